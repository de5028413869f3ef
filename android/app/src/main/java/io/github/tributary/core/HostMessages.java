package io.github.tributary.core;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** The lines of docs/APPBRIDGE.md that the app sends. Each ends with a line feed. */
public final class HostMessages {
    /** The version of the protocol. */
    public static final int VERSION = 1;

    private static final int MOST_ADDRESSES = 64;

    private HostMessages() {}

    public static String hello() {
        return line(object("hello", "version", VERSION));
    }

    public static String stop() {
        return line(object("stop"));
    }

    /**
     * All networks that may be used now, the limits of their accounts, the SIM that provides mobile data, and the other
     * apps that may use networks that cost money.
     */
    public static String links(List<Net> offered, Limits limits, int sim, AppAccess apps) {
        Set<String> accounts = new LinkedHashSet<String>();
        accounts.add(Net.account(sim)); // also while mobile data is down: with nothing left it is not requested
        JSONArray all = new JSONArray();
        for (Net n : offered) {
            JSONObject o = new JSONObject();
            put(o, "name", n.name);
            put(o, "handle", n.handle);
            put(o, "kind", n.kind.word);
            put(o, "addrs", new JSONArray(n.addrs));
            put(o, "dns", new JSONArray(n.dns));
            if (!n.nat64.isEmpty()) {
                put(o, "nat64", n.nat64);
            }
            put(o, "metered", n.costs());
            put(o, "validated", n.usable());
            if (!n.account().isEmpty()) {
                put(o, "account", n.account());
                accounts.add(n.account());
            }
            all.put(o);
        }
        JSONArray bounded = new JSONArray();
        for (String account : accounts) {
            JSONObject o = new JSONObject();
            put(o, "name", account);
            put(o, "monthly_bytes", limits.monthlyBytes);
            put(o, "daily_bytes", limits.dailyBytes);
            put(o, "first_day", limits.firstDay);
            bounded.put(o);
        }
        JSONObject access = new JSONObject();
        put(access, "metered", apps.choice.word);
        put(access, "uids", new JSONArray(apps.uids));
        return line(object("links", "links", all, "accounts", bounded, "cellular", Net.account(sim), "apps", access));
    }

    /** The app that owns a connection; {@link HostSession#NOBODY} = unknown. */
    public static String owned(long id, int uid) {
        JSONObject o = object("owned", "id", id);
        if (uid != HostSession.NOBODY) {
            put(o, "uid", uid);
        }
        return line(o);
    }

    /** The token that opens the gateway. The line contains a secret. */
    static String gateway(String token) {
        return line(object("gateway", "token", token));
    }

    /** An order to pair with a relay. The line contains a secret. */
    static String pair(long id, Invitation i) {
        return line(object("pair", "id", id, "link", i.link()));
    }

    /** An order to forget a relay. */
    static String forget(long id, String address) {
        return line(object("forget", "id", id, "address", address));
    }

    /** A notice that there is a file to fill. */
    public static String fetch(long id) {
        return line(object("fetch", "id", id));
    }

    /** What to fill a file with, and what it already holds. */
    public static String order(DownloadState s) {
        JSONObject o = new JSONObject();
        put(o, "url", s.source.url);
        try {
            s.source.write(o);
        } catch (JSONException e) {
            throw new IllegalStateException(e); // only for NaN and infinite numbers
        }
        if (s.unmetered) {
            put(o, "unmetered", true);
        }
        if (!s.version.validator.isEmpty()) {
            put(o, "have", s.kept);
            put(o, "validator", s.version.validator);
            put(o, "mark", s.version.mark);
            put(o, "size", s.version.size);
            put(o, "place", s.version.place);
        }
        return line(o);
    }

    /** The addresses of a name; an empty list = it has none. */
    public static String resolved(long id, List<String> addrs) {
        JSONObject o = object("resolved", "id", id);
        put(o, "addrs", new JSONArray(addrs.subList(0, Math.min(addrs.size(), MOST_ADDRESSES))));
        return line(o);
    }

    /** A failed lookup. */
    public static String unresolved(long id, String error) {
        JSONObject o = object("resolved", "id", id);
        put(o, "error", error);
        return line(o);
    }

    /** The error for a name that does not exist. */
    public static final String NOT_FOUND = "not_found";

    private static JSONObject object(String type, Object... pairs) {
        JSONObject o = new JSONObject();
        put(o, "type", type);
        for (int i = 0; i < pairs.length; i += 2) {
            put(o, (String) pairs[i], pairs[i + 1]);
        }
        return o;
    }

    private static void put(JSONObject o, String key, Object value) {
        try {
            o.put(key, value);
        } catch (JSONException e) {
            throw new IllegalArgumentException(key, e); // only for NaN and infinite numbers
        }
    }

    private static String line(JSONObject o) {
        return o.toString() + "\n";
    }
}
