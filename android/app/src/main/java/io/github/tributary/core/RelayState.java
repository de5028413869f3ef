package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.json.JSONArray;
import org.json.JSONObject;

/** The relay that carries tunnels over all networks, as the daemon sees it. A value. */
public final class RelayState {
    /** The connection to it over one network. */
    public static final class Lane {
        /** The name of the network's interface. */
        public final String link;

        public final boolean up;

        /** Why it is not up, a code of docs/APPBRIDGE.md; "" = it is up, or connecting. */
        public final String code;

        private Lane(JSONObject o) {
            link = o.optString("link");
            up = o.optBoolean("up");
            code = o.optString("code");
        }
    }

    /** "host:port". */
    public final String address;

    public final List<Lane> lanes;

    /** Whether it accepts no more tunnels at the moment. */
    public final boolean refuses;

    private RelayState(JSONObject o) {
        address = o.optString("address");
        refuses = !o.optString("refusal").isEmpty();
        List<Lane> all = new ArrayList<Lane>();
        JSONArray a = o.optJSONArray("lanes");
        for (int i = 0; a != null && i < a.length(); i++) {
            JSONObject lane = a.optJSONObject(i);
            if (lane != null) {
                all.add(new Lane(lane));
            }
        }
        lanes = Collections.unmodifiableList(all);
    }

    /** Parses the state; null = no relay is used. */
    static RelayState of(JSONObject o) {
        return o == null ? null : new RelayState(o);
    }
}
