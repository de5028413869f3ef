package io.github.tributary.app;

import android.net.LocalSocket;
import android.os.Handler;
import io.github.tributary.core.Fetches;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.LineWriter;
import io.github.tributary.core.Status;
import java.io.BufferedReader;
import java.io.Closeable;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import org.json.JSONException;

/**
 * Turns a connection for events into a session, binds the sockets that arrive over another one, and hands files over.
 */
final class HostConnections implements HostServer.Handler {
    /** Receives sessions, and hears what they report. Called on the handler's thread. */
    interface Listener extends HostSession.Listener {
        void attached(HostSession s);

        void detached(HostSession s);
    }

    private final NetworkHost networks;
    private final Fetches files;
    private final Handler handler;
    private final HostSession.Lookups lookups;
    private final Listener listener;

    HostConnections(NetworkHost networks, Fetches files, Handler handler, HostSession.Lookups lookups, Listener listener) {
        this.networks = networks;
        this.files = files;
        this.handler = handler;
        this.lookups = lookups;
        this.listener = listener;
    }

    @Override
    public void events(final LocalSocket s, InputStream in) throws IOException, JSONException {
        Closeable both =
                new Closeable() {
                    @Override
                    public void close() throws IOException {
                        s.shutdownInput(); // close alone does not wake a reader
                        s.shutdownOutput();
                    }
                };
        try (LineWriter out = new LineWriter(s.getOutputStream(), both)) {
            final HostSession session = new HostSession(out, networks, lookups, new Posting());
            session.begin();
            handler.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            listener.attached(session);
                        }
                    });
            try {
                BufferedReader lines = new BufferedReader(new InputStreamReader(in, "UTF-8"));
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    session.heard(line);
                }
            } finally {
                handler.post(
                        new Runnable() {
                            @Override
                            public void run() {
                                listener.detached(session);
                            }
                        });
            }
        }
    }

    private final class Posting implements HostSession.Listener {
        @Override
        public void wanted(final boolean cellular) {
            handler.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            listener.wanted(cellular);
                        }
                    });
        }

        @Override
        public void answered(final long id, final String address, final String code) {
            handler.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            listener.answered(id, address, code);
                        }
                    });
        }

        @Override
        public void status(final Status status) {
            handler.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            listener.status(status);
                        }
                    });
        }
    }

    @Override
    public void fetches(final LocalSocket s, final InputStream in, long id) throws IOException {
        files.serve(
                id,
                new Fetches.Connection() {
                    @Override
                    public void hand(String line, FileDescriptor file) throws IOException {
                        s.setFileDescriptorsForSend(new FileDescriptor[] {file});
                        s.getOutputStream().write(line.getBytes("UTF-8")); // the file travels with the first byte
                    }

                    @Override
                    public InputStream input() {
                        return in;
                    }

                    @Override
                    public void stop() {
                        try {
                            s.shutdownOutput();
                        } catch (IOException e) {
                            // already ended
                        }
                    }
                });
    }

    @Override
    public void binds(LocalSocket s, InputStream in) throws IOException {
        networks.binds(s, in);
    }
}
