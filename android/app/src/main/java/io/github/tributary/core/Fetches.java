package io.github.tributary.core;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/**
 * Hands files over to the daemon (docs/APPBRIDGE.md, "fetch"): the daemon is told that there is a file, and connects to
 * get it. Safe for concurrent use.
 */
public final class Fetches implements Fetcher {
    /** The daemon's connection for one file. */
    public interface Connection {
        /** Sends a line with the file. */
        void hand(String line, FileDescriptor file) throws IOException;

        InputStream input() throws IOException;

        /** Closes our side: the daemon reports its progress and ends. */
        void stop();
    }

    private static final long PATIENCE_MILLIS = 10_000; // for the daemon to connect

    private final Map<Long, Order> orders = new HashMap<Long, Order>(); // waiting for their connection; guarded by this
    private HostSession session; // with the running daemon; null = none
    private long lastId;

    /** Sets the session with the daemon that runs from now on; null = none. */
    public synchronized void session(HostSession s) {
        session = s;
    }

    @Override
    public Fill fill(DownloadState from, FileDescriptor file, Listener listener) throws Failed {
        Order o = new Order(HostMessages.order(from), file, listener);
        synchronized (this) {
            if (session == null) {
                throw new Failed(new Failure(Failure.STARTING, "", 0, ""), true);
            }
            orders.put(++lastId, o);
            o.id = lastId;
            session.fetch(o.id);
        }
        return o;
    }

    /** Parses an array like [{"link":"wlan0","bytes":7}]; null = the daemon does not report it. */
    private synchronized Shares brought(JSONArray links) throws JSONException {
        Shares all = Shares.NONE;
        for (int i = 0; links != null && i < links.length(); i++) {
            JSONObject l = links.getJSONObject(i);
            Net.Kind kind = session == null ? Net.Kind.OTHER : session.kind(l.getString("link"));
            all = all.plus(kind, l.getLong("bytes"));
        }
        return all;
    }

    private synchronized Order take(long id) {
        return orders.remove(id);
    }

    /** Serves a connection of the daemon until it ends. */
    public void serve(long id, Connection c) throws IOException {
        Order o = take(id);
        if (o != null) { // else nobody is waiting for it
            o.serve(c);
        }
    }

    private final class Order implements Fill {
        private final String line;
        private final FileDescriptor file;
        private final Listener listener;
        private long id;

        // Guarded by the order.
        private Connection connection;
        private boolean stopped;
        private boolean ended;
        private boolean done;
        private Failed failure;

        Order(String line, FileDescriptor file, Listener listener) {
            this.line = line;
            this.file = file;
            this.listener = listener;
        }

        private void serve(Connection c) throws IOException {
            if (!begin(c)) {
                end(false, null);
                return;
            }
            try {
                c.hand(line, file);
                BufferedReader in = new BufferedReader(new InputStreamReader(c.input(), "UTF-8"));
                for (String s = in.readLine(); s != null; s = in.readLine()) {
                    if (heard(new JSONObject(s))) {
                        return;
                    }
                }
                end(false, new Failed(new Failure(Failure.DAEMON, "", 0, "it stopped"), true));
            } catch (IOException | JSONException e) {
                end(false, new Failed(Failure.here(Failure.DAEMON, e), true));
            }
        }

        private synchronized boolean begin(Connection c) {
            connection = c;
            notifyAll();
            return !stopped;
        }

        /** Returns whether it was the last message. */
        private boolean heard(JSONObject m) throws JSONException {
            String type = m.getString("type");
            if (type.equals("at")) {
                Version v = new Version(m.optString("validator"), m.optString("mark"), m.optLong("size", -1), m.optString("place"));
                listener.at(new Step(m.optString("name"), v, m.getLong("bytes"), m.optLong("kept"), brought(m.optJSONArray("links"))));
                return false;
            } else if (type.equals("done")) {
                end(true, null);
            } else if (type.equals("stopped")) {
                // Unless we stopped it, its end is a failure: the daemon shut down cleanly.
                end(false, wasStopped() ? null : new Failed(new Failure(Failure.DAEMON, "", 0, "it stopped"), true));
            } else if (type.equals("failed")) {
                end(false, new Failed(Failure.parse(m), m.optBoolean("again")));
            } else {
                return false;
            }
            return true;
        }

        private synchronized boolean wasStopped() {
            return stopped;
        }

        private synchronized void end(boolean all, Failed why) {
            ended = true;
            done = all;
            failure = why;
            notifyAll();
        }

        @Override
        public boolean await() throws Failed, InterruptedException {
            if (!comes() && take(id) != null) {
                synchronized (this) {
                    if (stopped) {
                        return false;
                    }
                    throw new Failed(new Failure(Failure.DAEMON, "", 0, "it does not connect"), true);
                }
            }
            synchronized (this) {
                while (!ended) {
                    wait();
                }
                if (failure != null) {
                    throw failure;
                }
                return done;
            }
        }

        /** Waits for the daemon's connection; false = it did not arrive in time, or not before the stop. */
        private synchronized boolean comes() throws InterruptedException {
            long end = System.nanoTime() + PATIENCE_MILLIS * 1_000_000;
            for (long left = PATIENCE_MILLIS; connection == null && !stopped && left > 0; left = (end - System.nanoTime()) / 1_000_000) {
                wait(left);
            }
            return connection != null;
        }

        @Override
        public synchronized void stop() {
            stopped = true;
            if (connection != null && !ended) {
                connection.stop();
            }
            notifyAll();
        }
    }
}
