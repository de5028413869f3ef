package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import org.json.JSONException;
import org.json.JSONObject;
import org.junit.Test;

/** Every network is listed, with what is done with it and why. */
public class LinkRowTest {
    private static final Net WIFI = net("wlan0", Net.Kind.WIFI);
    private static final Net OTHER = net("wlan1", Net.Kind.WIFI);
    private static final Net MOBILE = net("rmnet0", Net.Kind.CELLULAR);

    private static Net net(String name, Net.Kind kind) {
        return new Net(7, name, kind, Arrays.asList("10.0.0.2/24"), Collections.<String>emptyList(), "", Net.NO_SIM, EnumSet.of(Net.Trait.VALIDATED));
    }

    private static String rows(Status s) {
        MobilePolicy wifiOnly = new MobilePolicy(MobilePolicy.Mode.WIFI_ONLY, false, false, Limits.NONE);
        StringBuilder b = new StringBuilder();
        for (LinkRow r : LinkRow.rows(new Offer(Arrays.asList(WIFI, OTHER, MOBILE), wifiOnly, false, false, Collections.<String>emptySet()), s)) {
            b.append(r.net.name).append(' ').append(r.use).append(r.link == null ? "" : " " + r.link.bytes).append("; ");
        }
        return b.toString();
    }

    @Test
    public void showsWhatTheDaemonSays() throws JSONException {
        Status s = Status.parse(new JSONObject("{'links':[{'name':'wlan0','state':'up','bytes':9},{'name':'rmnet0','bytes':5},{'name':'gone'}]}"));
        assertEquals("wlan0 OFFERED 9; wlan1 OFFERED; rmnet0 NOT_WANTED; ", rows(s));
        assertEquals("the daemon has said nothing yet", "wlan0 OFFERED; wlan1 OFFERED; rmnet0 NOT_WANTED; ", rows(null));
    }
}
