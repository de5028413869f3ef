package io.github.tributary.core;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import org.json.JSONException;
import org.json.JSONObject;

/**
 * What is said with one run of the daemon over its connection for events. {@link #heard} is called by one thread; the other
 * methods by any.
 */
public final class HostSession implements RelayWish.Daemon {
    /** The connection. */
    public interface Wire {
        /** Sends a line, or gives the connection up. May block for a short time. */
        void send(String line);
    }

    /** An app of which the system does not say who it is. */
    public static final int NOBODY = -1;

    /** Answers what only the app may ask the system. */
    public interface Resolver {
        /** Looks a name up, by the network that has the handle: the addresses, none if it has none, null if it does not exist. */
        List<String> resolve(long handle, String name) throws Exception;

        /** The user ID of the app whose socket has the address local ("address:port") and is connected to remote, or NOBODY. */
        default int owner(String local, String remote) throws Exception {
            return NOBODY;
        }
    }

    /** Runs lookups, those over one network apart from the others: a network that answers nothing holds up no other. */
    public interface Lookups {
        /** Throws RejectedExecutionException if too many wait. */
        void execute(long handle, Runnable lookup);
    }

    /** What the daemon tells. */
    public interface Listener {
        /** Mobile data would help, or does not any more. */
        void wanted(boolean cellular);

        /** What goes on. */
        void status(Status status);

        /** What was wanted of a relay is done, or was not: {@link RelayWish#answered}. */
        void answered(long id, String address, String code);
    }

    private static final long NO_NETWORK = 0; // no handle of a network's

    private final Wire wire;
    private final Resolver resolver;
    private final Lookups lookups;
    private final Listener listener;
    private final Map<String, Net.Kind> kinds = new ConcurrentHashMap<String, Net.Kind>(); // of all that were offered

    public HostSession(Wire wire, Resolver resolver, Lookups lookups, Listener listener) {
        this.wire = wire;
        this.resolver = resolver;
        this.lookups = lookups;
        this.listener = listener;
    }

    private synchronized void send(String line) {
        wire.send(line);
    }

    /** Greets, which must come first. */
    public void begin() {
        send(HostMessages.hello());
    }

    /** Tells the daemon which networks it may use from now on, how much, which SIM mobile data comes from, and for which apps. */
    public void offer(List<Net> offered, Limits limits, int sim, AppAccess apps) {
        for (Net n : offered) {
            kinds.put(n.name, n.kind);
        }
        send(HostMessages.links(offered, limits, sim, apps));
    }

    /** Tells the daemon by which token its gateway may be used. */
    public void gateway(String token) {
        send(HostMessages.gateway(token));
    }

    @Override
    public void pair(long id, Invitation invitation) {
        send(HostMessages.pair(id, invitation));
    }

    @Override
    public void forget(long id, String address) {
        send(HostMessages.forget(id, address));
    }

    /** What a network is made of that was offered under a name, though it may be gone. */
    Net.Kind kind(String name) {
        Net.Kind kind = kinds.get(name);
        return kind == null ? Net.Kind.OTHER : kind;
    }

    /** Has the daemon connect for a file. */
    void fetch(long id) {
        send(HostMessages.fetch(id));
    }

    /** Has the daemon end in order. */
    public void stop() {
        send(HostMessages.stop());
    }

    /** Takes in a line of the daemon. What is not known is ignored. */
    public void heard(String line) throws JSONException {
        JSONObject m = new JSONObject(line);
        String type = m.getString("type");
        if (type.equals("resolve")) {
            lookUp(m.getLong("id"), m.getLong("handle"), m.getString("name"));
        } else if (type.equals("owner")) {
            own(m.getLong("id"), m.getString("local"), m.getString("remote"));
        } else if (type.equals("paired") || type.equals("forgotten")) {
            listener.answered(m.getLong("id"), m.optString("address"), m.optString("code"));
        } else if (type.equals("want")) {
            listener.wanted(m.getBoolean("cellular"));
        } else if (type.equals("status")) {
            listener.status(Status.parse(m.getJSONObject("status")));
        }
    }

    /** Finds out who has a connection, apart from what networks take. */
    private void own(final long id, final String local, final String remote) {
        Runnable question =
                new Runnable() {
                    @Override
                    public void run() {
                        int uid = NOBODY;
                        try {
                            uid = resolver.owner(local, remote);
                        } catch (Exception e) { // then nobody knows
                            uid = NOBODY;
                        }
                        send(HostMessages.owned(id, uid));
                    }
                };
        try {
            lookups.execute(NO_NETWORK, question);
        } catch (RejectedExecutionException e) {
            send(HostMessages.owned(id, NOBODY));
        }
    }

    private void lookUp(final long id, final long handle, final String name) {
        Runnable question =
                new Runnable() {
                    @Override
                    public void run() {
                        send(answer(id, handle, name));
                    }
                };
        try {
            lookups.execute(handle, question);
        } catch (RejectedExecutionException e) {
            send(HostMessages.unresolved(id, "too many lookups at once"));
        }
    }

    private String answer(long id, long handle, String name) {
        try {
            List<String> addrs = resolver.resolve(handle, name);
            if (addrs == null) {
                return HostMessages.unresolved(id, HostMessages.NOT_FOUND);
            }
            return HostMessages.resolved(id, addrs);
        } catch (Exception e) {
            String why = e.getMessage();
            return HostMessages.unresolved(id, why == null ? e.getClass().getSimpleName() : why);
        }
    }
}
