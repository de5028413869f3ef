package io.github.tributary.app;

import android.content.Context;
import android.os.Handler;
import android.util.Log;
import io.github.tributary.core.DaemonProcess;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.LookupPools;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;

/** The daemon's process, and the socket that it connects to. Call start and stop once each. */
class Daemon {
    /** Hears of the daemon, on the handler's thread. */
    interface Listener extends HostConnections.Listener, DaemonProcess.Listener {}

    private static final String TAG = "tributary";
    private static final long PATIENCE_MILLIS = 6_000; // the daemon gives its downloads 5 s

    private final Context context;
    private final NetworkHost networks;
    private final Handler handler;
    private final Listener listener;
    private final LookupPools lookups = new LookupPools();

    /**
     * The thread that ends the daemon before this one, which may still have the port; null = none. Owned by the main
     * thread.
     */
    private static Thread ending;
    private Closeable server;
    private DaemonProcess process;
    private Thread beginning;

    Daemon(Context context, NetworkHost networks, Handler handler, Listener listener) {
        this.context = context;
        this.networks = networks;
        this.handler = handler;
        this.listener = listener;
    }

    void start() throws IOException {
        File socket = new File(context.getFilesDir(), "host.sock");
        server = openHost(socket);
        process = new DaemonProcess(command(socket), environment(), context.getFilesDir(), log(context), new Posting());
        final Thread before = ending;
        beginning =
                new Thread("begin") {
                    @Override
                    public void run() {
                        if (await(before)) {
                            process.start();
                        }
                    }
                };
        beginning.start();
    }

    private static boolean await(Thread t) {
        try {
            if (t != null) {
                t.join();
            }
            return true;
        } catch (InterruptedException e) { // nobody interrupts this thread
            return false;
        }
    }

    /** Listens for the daemon. Tests have no such sockets. */
    Closeable openHost(File socket) throws IOException {
        HostServer s = new HostServer(socket, new HostConnections(networks, App.fetches(context), handler, lookups, listener));
        s.start();
        return s;
    }

    /** Returns the log that it writes. */
    static File log(Context context) {
        return new File(context.getCacheDir(), "log");
    }

    List<String> command(File socket) {
        String binary = context.getApplicationInfo().nativeLibraryDir + "/libtributary.so";
        // Every app is a user of its own, and Android does not report which app owns a connection: all are let in.
        return Arrays.asList(
                binary, "serve", "--app-socket", socket.getPath(), "--listen", ProxyService.LISTEN, "--admin", "", "--allow-users", "all", "--gateway",
                ProxyService.GATEWAY);
    }

    /** Returns what the daemon cannot find out by itself on Android. */
    private Map<String, String> environment() {
        File files = context.getFilesDir();
        Map<String, String> env = new HashMap<String, String>();
        env.put("HOME", files.getPath());
        env.put("XDG_CONFIG_HOME", files.getPath());
        env.put("STATE_DIRECTORY", files.getPath());
        env.put("RUNTIME_DIRECTORY", new File(files, "run").getPath()); // the daemon creates it for itself alone
        env.put("TMPDIR", context.getCacheDir().getPath());
        env.put("TZ", TimeZone.getDefault().getID());
        File roots = new File("/apex/com.android.conscrypt/cacerts"); // from system updates, which also remove roots
        env.put("SSL_CERT_DIR", roots.isDirectory() ? roots.getPath() : "/system/etc/security/cacerts");
        return env;
    }

    /** Ends it, off the caller's thread. Session null = none. */
    void stop(final HostSession session) {
        ending =
                new Thread("end") {
                    @Override
                    public void run() {
                        if (session != null) {
                            session.stop();
                        }
                        await(beginning);
                        try {
                            process.stop(PATIENCE_MILLIS);
                            server.close();
                        } catch (InterruptedException | IOException e) {
                            Log.w(TAG, "the daemon may still run", e);
                        }
                        lookups.close();
                    }
                };
        ending.start();
    }

    private final class Posting implements DaemonProcess.Listener {
        @Override
        public void started() {
            handler.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            listener.started();
                        }
                    });
        }

        @Override
        public void died(final int code, final long waitMillis) {
            handler.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            listener.died(code, waitMillis);
                        }
                    });
        }
    }
}
