package io.github.tributary.app;

import android.net.LocalServerSocket;
import android.net.LocalSocket;
import android.net.LocalSocketAddress;
import android.os.Process;
import android.os.SystemClock;
import java.io.Closeable;
import java.io.File;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashSet;
import java.util.Set;
import org.json.JSONException;
import org.json.JSONObject;

/**
 * The socket that the daemon connects to (docs/APPBRIDGE.md). One thread accepts connections, and each connection has
 * its own thread.
 */
final class HostServer implements Closeable {
    /** Serves connections, each on a thread of its own; a method returns when its connection ends. */
    interface Handler {
        void events(LocalSocket s, InputStream in) throws IOException, JSONException;

        void binds(LocalSocket s, InputStream in) throws IOException;

        /** Serves the connection for the file with that number. */
        void fetches(LocalSocket s, InputStream in, long id) throws IOException;
    }

    private static final int LONGEST_HELLO = 1024;
    private static final long AGAIN_MILLIS = 500;

    private final LocalSocket bound;
    private final LocalServerSocket server;
    private final Handler handler;
    private final Set<LocalSocket> open = new HashSet<LocalSocket>(); // guarded by this, as is closed
    private boolean closed;

    HostServer(File path, Handler handler) throws IOException {
        this.handler = handler;
        if (path.exists() && !path.delete()) {
            throw new IOException("an old socket cannot be removed");
        }
        bound = new LocalSocket();
        bound.bind(new LocalSocketAddress(path.getPath(), LocalSocketAddress.Namespace.FILESYSTEM));
        server = new LocalServerSocket(bound.getFileDescriptor()); // listens
    }

    void start() {
        new Thread("host") {
            @Override
            public void run() {
                accept();
            }
        }.start();
    }

    private void accept() {
        while (true) {
            final LocalSocket s;
            try {
                s = server.accept();
            } catch (IOException e) { // closed, or too many connections are open
                if (isClosed()) {
                    return;
                }
                SystemClock.sleep(AGAIN_MILLIS);
                continue;
            }
            synchronized (this) {
                if (closed || !ours(s)) {
                    close(s);
                    continue;
                }
                open.add(s);
            }
            new Thread("host connection") {
                @Override
                public void run() {
                    serve(s);
                }
            }.start();
        }
    }

    private synchronized boolean isClosed() {
        return closed;
    }

    /** Returns whether our own daemon is at the other end. */
    private static boolean ours(LocalSocket s) {
        try {
            return s.getPeerCredentials().getUid() == Process.myUid();
        } catch (IOException e) {
            return false;
        }
    }

    private void serve(LocalSocket s) {
        try {
            InputStream in = s.getInputStream();
            JSONObject hello = new JSONObject(hello(in));
            String channel = hello.getString("channel");
            if (channel.equals("bind")) {
                handler.binds(s, in);
            } else if (channel.equals("fetch")) {
                handler.fetches(s, in, hello.getLong("id"));
            } else {
                handler.events(s, in);
            }
        } catch (IOException | JSONException e) {
            // the daemon is gone, or this was not the daemon; it is restarted
        } finally {
            synchronized (this) {
                open.remove(s);
            }
            close(s);
        }
    }

    /** Reads the first line and no byte more: descriptors arrive with what follows. */
    private static String hello(InputStream in) throws IOException {
        StringBuilder b = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0 || b.length() == LONGEST_HELLO) {
                throw new IOException("no greeting");
            }
            b.append((char) c);
        }
        return b.toString();
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            for (LocalSocket s : open) {
                close(s);
            }
        }
        try {
            // accept notices a shutdown of its descriptor, but not a close.
            android.system.Os.shutdown(bound.getFileDescriptor(), android.system.OsConstants.SHUT_RDWR);
            server.close();
            bound.close();
        } catch (IOException | android.system.ErrnoException e) {
            // the accepting thread ends with the process at the latest
        }
    }

    private static void close(LocalSocket s) {
        try {
            s.shutdownInput(); // close alone does not wake a reader
        } catch (IOException e) {
            // already ended
        }
        try {
            s.close();
        } catch (IOException e) {
            // nothing more can be done
        }
    }

    /** Closes a descriptor that arrived with a message. */
    static void close(FileDescriptor fd) {
        try {
            android.system.Os.close(fd);
        } catch (android.system.ErrnoException e) {
            // not a valid descriptor
        }
    }
}
