package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** The status that the daemon reports. A value. */
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

        /** Bytes received since the daemon started. */
        public final long bytes;

        /** Bytes left this month or today, whichever is less; -1 = there is no limit. */
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

    /** A limit, and what is left of it, in bytes. */
    public static final class Quota {
        public final long limit;
        public final long left;

        private Quota(JSONObject o) {
            limit = o.optLong("limit_bytes");
            left = o.optLong("left_bytes");
        }

        private static Quota of(JSONObject o) {
            return o == null ? null : new Quota(o);
        }
    }

    /** What is left for links that are counted together. */
    public static final class Account {
        public final String name;

        /** The first day of the counted month, "2026-11-15"; "" = not known yet. */
        public final String since;

        /** Null = no limit. */
        public final Quota monthly;

        /** Null = no limit. */
        public final Quota daily;

        private Account(JSONObject o) throws JSONException {
            name = o.getString("name");
            since = o.optString("since");
            monthly = Quota.of(o.optJSONObject("monthly"));
            daily = Quota.of(o.optJSONObject("daily"));
        }
    }

    public final List<Link> links;

    /** The accounts with a limit. */
    public final List<Account> accounts;

    /**
     * The number of running downloads, and of tunnels and undivided requests that move data, such as those of browsers.
     */
    public final int transfers;

    /** Null = there is none. */
    public final RelayState relay;

    private Status(List<Link> links, List<Account> accounts, int transfers, RelayState relay) {
        this.links = Collections.unmodifiableList(links);
        this.accounts = Collections.unmodifiableList(accounts);
        this.transfers = transfers;
        this.relay = relay;
    }

    public static Status parse(JSONObject o) throws JSONException {
        List<Link> links = new ArrayList<Link>();
        JSONArray all = o.optJSONArray("links");
        for (int i = 0; all != null && i < all.length(); i++) {
            links.add(new Link(all.getJSONObject(i)));
        }
        List<Account> accounts = new ArrayList<Account>();
        JSONArray bounded = o.optJSONArray("accounts");
        for (int i = 0; bounded != null && i < bounded.length(); i++) {
            accounts.add(new Account(bounded.getJSONObject(i)));
        }
        JSONArray transfers = o.optJSONArray("transfers");
        int undivided = o.optInt("undivided_running");
        return new Status(links, accounts, undivided + (transfers == null ? 0 : transfers.length()), RelayState.of(o.optJSONObject("relay")));
    }

    /** Returns the link with that name; null = there is none. */
    public Link link(String name) {
        for (Link l : links) {
            if (l.name.equals(name)) {
                return l;
            }
        }
        return null;
    }

    /**
     * Returns the names of links that bring nothing though they should, and did not at the time of an earlier status;
     * before null = there is none. A pause is not enough: a suspected link often brings its bytes a moment later.
     */
    public Set<String> silent(Status before) {
        Set<String> names = new HashSet<String>();
        for (Link l : links) {
            Link was = before == null ? null : before.link(l.name);
            if (!l.state.equals("up") && (!l.state.equals("suspect") || was != null && was.state.equals("suspect"))) {
                names.add(l.name);
            }
        }
        return names;
    }

    /** Returns whether a limit of an account is used up. */
    public boolean spent(String account) {
        for (Account a : accounts) {
            if (a.name.equals(account) && (a.monthly != null && a.monthly.left <= 0 || a.daily != null && a.daily.left <= 0)) {
                return true;
            }
        }
        return false;
    }

    /** Returns the bytes that all links brought since the daemon started. */
    public long bytes() {
        long sum = 0;
        for (Link l : links) {
            sum += l.bytes;
        }
        return sum;
    }

    /** Returns the rate of all links in bytes per second; 0 while nothing runs. */
    public long rate() {
        long sum = 0;
        for (Link l : links) {
            sum += l.goodput;
        }
        return transfers == 0 ? 0 : sum;
    }
}
