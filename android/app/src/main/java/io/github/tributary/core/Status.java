package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** What the daemon says goes on. A value. */
public final class Status {
    /** One link. */
    public static final class Link {
        public final String name;

        /** "up", "suspect", "banned", "probing", "down". */
        public final String state;

        /** Why it is in this state; "" when up. */
        public final String reason;

        /** Bytes per second. */
        public final long goodput;

        /** Received since the daemon began. */
        public final long bytes;

        /** Bytes left this month; -1 = there is no limit. */
        public final long monthlyLeft;

        Link(JSONObject o) throws JSONException {
            name = o.getString("name");
            state = o.optString("state");
            reason = o.optString("reason");
            goodput = (long) o.optDouble("goodput_bytes_per_second", 0);
            bytes = o.optLong("bytes");
            monthlyLeft = o.optLong("monthly_left_bytes", -1);
        }
    }

    public final List<Link> links;

    /** Downloads that run. */
    public final int transfers;

    private Status(List<Link> links, int transfers) {
        this.links = Collections.unmodifiableList(links);
        this.transfers = transfers;
    }

    public static Status parse(JSONObject o) throws JSONException {
        List<Link> links = new ArrayList<Link>();
        JSONArray all = o.optJSONArray("links");
        for (int i = 0; all != null && i < all.length(); i++) {
            links.add(new Link(all.getJSONObject(i)));
        }
        JSONArray transfers = o.optJSONArray("transfers");
        return new Status(links, transfers == null ? 0 : transfers.length());
    }

    /** The link of that name; null = there is none. */
    public Link link(String name) {
        for (Link l : links) {
            if (l.name.equals(name)) {
                return l;
            }
        }
        return null;
    }

    /** What all links have brought since the daemon began. */
    public long bytes() {
        long sum = 0;
        for (Link l : links) {
            sum += l.bytes;
        }
        return sum;
    }

    /** The rate of all links, in bytes per second; 0 while nothing runs. */
    public long rate() {
        long sum = 0;
        for (Link l : links) {
            sum += l.goodput;
        }
        return transfers == 0 ? 0 : sum;
    }
}
