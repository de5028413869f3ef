package io.github.tributary.core;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import org.json.JSONException;
import org.json.JSONObject;

/**
 * The conversation with one run of the daemon over its connection for events. {@link #heard} is called on one thread;
 * the other methods may be called on any.
 */
public final class HostSession implements RelayWish.Daemon {
    /** The connection. */
    public interface Wire {
        /** Sends a line, or drops the connection. May block for a short time. */
        void send(String line);
    }

    /** The owner of a connection that the system does not attribute to an app. */
    public static final int NOBODY = -1;

    /** Answers questions that only the app may ask the system. */
    public interface Resolver {
        /**
         * Looks up a name over the network with the handle. Returns the addresses: an empty list if it has none, null
         * if it does not exist.
         */
        List<String> resolve(long handle, String name) throws Exception;

        /**
         * Returns the user ID of the app whose socket has the address local ("address:port") and is connected to
         * remote, or NOBODY.
         */
        default int owner(String local, String remote) throws Exception {
            return NOBODY;
        }
    }

    /** Runs lookups, separately for each network: a network that does not answer delays no other. */
    public interface Lookups {
        /** Throws RejectedExecutionException if too many are waiting. */
        void execute(long handle, Runnable lookup);
    }

    /** Hears what the daemon reports. */
    public interface Listener {
        /** Mobile data would help, or no longer would. */
        void wanted(boolean cellular);

        /** The current status. */
        void status(Status status);

        /** A wish for a relay was fulfilled, or failed: {@link RelayWish#answered}. */
        void answered(long id, String address, String code);
    }

    private static final long NO_NETWORK = 0; // not the handle of any network

    private final Wire wire;
    private final Resolver resolver;
    private final Lookups lookups;
    private final Listener listener;
    private final Map<String, Net.Kind> kinds = new ConcurrentHashMap<String, Net.Kind>(); // of all offered networks

    public HostSession(Wire wire, Resolver resolver, Lookups lookups, Listener listener) {
        this.wire = wire;
        this.resolver = resolver;
        this.lookups = lookups;
        this.listener = listener;
    }

    private synchronized void send(String line) {
        wire.send(line);
    }

    /** Sends the greeting, which must come first. */
    public void begin() {
        send(HostMessages.hello());
    }

    /**
     * Tells the daemon which networks it may use from now on, how much, which SIM provides mobile data, and for which
     * apps.
     */
    public void offer(List<Net> offered, Limits limits, int sim, AppAccess apps) {
        for (Net n : offered) {
            kinds.put(n.name, n.kind);
        }
        send(HostMessages.links(offered, limits, sim, apps));
    }

    /** Tells the daemon which token opens its gateway. */
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

    /** Returns the kind of the network that was offered under a name, even if it is gone. */
    Net.Kind kind(String name) {
        Net.Kind kind = kinds.get(name);
        return kind == null ? Net.Kind.OTHER : kind;
    }

    /** Makes the daemon connect for a file. */
    void fetch(long id) {
        send(HostMessages.fetch(id));
    }

    /** Makes the daemon shut down cleanly. */
    public void stop() {
        send(HostMessages.stop());
    }

    /** Handles a line from the daemon. Unknown messages are ignored. */
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

    /** Finds out which app owns a connection, separately from the lookups over networks. */
    private void own(final long id, final String local, final String remote) {
        Runnable question =
                new Runnable() {
                    @Override
                    public void run() {
                        int uid = NOBODY;
                        try {
                            uid = resolver.owner(local, remote);
                        } catch (Exception e) { // then the owner is unknown
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
