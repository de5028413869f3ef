package io.github.tributary.app;

import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.app.PendingIntent;
import android.app.Service;
import android.content.Context;
import android.content.Intent;
import android.content.SharedPreferences;
import android.content.pm.ServiceInfo;
import android.net.ConnectivityManager;
import android.net.LocalSocket;
import android.os.Build;
import android.os.Handler;
import android.os.IBinder;
import android.os.Looper;
import android.text.format.Formatter;
import android.util.Log;
import io.github.tributary.R;
import io.github.tributary.core.DaemonProcess;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.Net;
import io.github.tributary.core.Status;
import java.io.BufferedReader;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.json.JSONException;

/**
 * Keeps the daemon running in the foreground, with the networks that the user allows. The main thread owns all fields; others
 * post to it.
 */
public class ProxyService extends Service {
    /** Where apps find the proxy. */
    static final String LISTEN = "127.0.0.1:8080";

    private static final String TAG = "tributary";
    private static final String STOP = "io.github.tributary.STOP";
    private static final String CHANNEL = "running";
    private static final int NOTIFICATION = 1;
    private static final long PATIENCE_MILLIS = 6_000; // the daemon gives its downloads 5 s
    private static final int LOOKUPS = 16; // at a time

    /** What the screen shows; null while nothing runs. Written by the main thread. */
    private static volatile ProxyService running;

    private final Handler main = new Handler(Looper.getMainLooper());
    private final NetworkHost networks = new NetworkHost();

    private Settings settings;
    private LinkWatcher watcher;
    private Closeable server;
    private DaemonProcess process;
    private ExecutorService lookups;
    private HostSession session; // with the daemon that runs; null = none
    private List<Net> present = Collections.emptyList();
    private boolean wanted; // mobile data, by the daemon
    private Status status;
    private String trouble = "";

    private final SharedPreferences.OnSharedPreferenceChangeListener changes =
            new SharedPreferences.OnSharedPreferenceChangeListener() {
                @Override
                public void onSharedPreferenceChanged(SharedPreferences prefs, String key) {
                    offer();
                }
            };

    static void start(Context context) {
        new Settings(context).setRun(true);
        context.startForegroundService(new Intent(context, ProxyService.class));
    }

    static void stop(Context context) {
        new Settings(context).setRun(false);
        context.stopService(new Intent(context, ProxyService.class));
    }

    /** The networks as the daemon sees them; null = it has said nothing yet, or does not run. */
    static Status status() {
        ProxyService s = running;
        return s == null ? null : s.status;
    }

    /** Why it does not run as it should; "" = it does. */
    static String trouble() {
        ProxyService s = running;
        return s == null ? "" : s.trouble;
    }

    @Override
    public void onCreate() {
        super.onCreate();
        NotificationManager manager = (NotificationManager) getSystemService(NOTIFICATION_SERVICE);
        manager.createNotificationChannel(
                new NotificationChannel(CHANNEL, getString(R.string.channel), NotificationManager.IMPORTANCE_LOW));
    }

    @Override
    public IBinder onBind(Intent intent) {
        return null;
    }

    @Override
    public int onStartCommand(Intent intent, int flags, int id) {
        foreground();
        if (intent != null && STOP.equals(intent.getAction())) {
            new Settings(this).setRun(false);
            stopSelf();
            return START_NOT_STICKY;
        }
        if (process == null) {
            begin();
        }
        return START_STICKY; // after a kill it comes back
    }

    private void begin() {
        settings = new Settings(this);
        settings.listen(changes);
        lookups =
                new ThreadPoolExecutor(
                        LOOKUPS, LOOKUPS, 30, TimeUnit.SECONDS, new LinkedBlockingQueue<Runnable>(256));
        ((ThreadPoolExecutor) lookups).allowCoreThreadTimeOut(true);
        File socket = new File(getFilesDir(), "host.sock");
        try {
            server = openHost(socket);
        } catch (IOException e) {
            Log.e(TAG, "host socket", e);
            stopSelf();
            return;
        }
        ConnectivityManager manager = (ConnectivityManager) getSystemService(CONNECTIVITY_SERVICE);
        watcher =
                new LinkWatcher(
                        manager,
                        main,
                        new LinkWatcher.Listener() {
                            @Override
                            public void networks(List<Net> all) {
                                present = all;
                                offer();
                            }
                        });
        watcher.start();
        process = new DaemonProcess(command(socket), environment(), getFilesDir(), new File(getCacheDir(), "log"), new Process());
        process.start();
        running = this;
    }

    /** Listens for the daemon. Tests have no such sockets. */
    Closeable openHost(File socket) throws IOException {
        HostServer s = new HostServer(socket, new Connections());
        s.start();
        return s;
    }

    /** The daemon's command. */
    List<String> command(File socket) {
        String binary = getApplicationInfo().nativeLibraryDir + "/libtributary.so";
        // Every app is a user of its own, and Android does not tell one whose a connection is: all are let in.
        return Arrays.asList(
                binary, "serve", "--host-socket", socket.getPath(), "--listen", LISTEN, "--admin", "", "--allow-users", "all");
    }

    /** What the daemon cannot find out by itself on Android. */
    private Map<String, String> environment() {
        Map<String, String> env = new HashMap<String, String>();
        env.put("HOME", getFilesDir().getPath());
        env.put("XDG_CONFIG_HOME", getFilesDir().getPath());
        env.put("STATE_DIRECTORY", getFilesDir().getPath());
        env.put("RUNTIME_DIRECTORY", getFilesDir().getPath());
        env.put("TMPDIR", getCacheDir().getPath());
        env.put("TZ", TimeZone.getDefault().getID());
        env.put("SSL_CERT_DIR", "/apex/com.android.conscrypt/cacerts:/system/etc/security/cacerts");
        return env;
    }

    /** Tells the daemon which networks it may use, and the system whether mobile data is wanted. */
    private void offer() {
        MobilePolicy policy = settings.policy();
        watcher.request(policy.request(wanted));
        if (session != null) {
            session.offer(policy.offer(present), policy);
        }
    }

    @Override
    public void onDestroy() {
        running = null;
        if (process != null) {
            settings.forget(changes);
            watcher.stop();
            end(process, session, server, lookups);
        }
        super.onDestroy();
    }

    /** Ends what must be waited for, away from the main thread. */
    private static void end(
            final DaemonProcess process, final HostSession session, final Closeable server, final ExecutorService lookups) {
        new Thread("end") {
            @Override
            public void run() {
                if (session != null) {
                    session.stop();
                }
                try {
                    process.stop(PATIENCE_MILLIS);
                    server.close();
                } catch (InterruptedException | IOException e) {
                    Log.w(TAG, "the daemon may still run", e);
                }
                lookups.shutdownNow();
            }
        }.start();
    }

    /** Takes on a daemon that has connected. */
    void attached(HostSession s) {
        session = s;
        offer();
    }

    /** Who hears what a daemon tells. */
    HostSession.Listener listener() {
        return new Told();
    }

    private final class Connections implements HostServer.Handler {
        @Override
        public void events(final LocalSocket s, InputStream in) throws IOException, JSONException {
            final OutputStream out = s.getOutputStream();
            HostSession.Wire wire =
                    new HostSession.Wire() {
                        @Override
                        public void send(String line) {
                            try {
                                out.write(line.getBytes("UTF-8"));
                            } catch (IOException e) {
                                Log.w(TAG, "the daemon does not listen", e); // its end is seen by the reader
                            }
                        }
                    };
            final HostSession mine = new HostSession(wire, networks, lookups, listener());
            mine.begin();
            main.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            attached(mine);
                        }
                    });
            BufferedReader lines = new BufferedReader(new InputStreamReader(in, "UTF-8"));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                mine.heard(line);
            }
            main.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            if (session == mine) {
                                session = null;
                                wanted = false;
                            }
                        }
                    });
        }

        @Override
        public void binds(LocalSocket s, InputStream in) throws IOException {
            networks.binds(s, in);
        }
    }

    private final class Told implements HostSession.Listener {
        @Override
        public void wanted(final boolean cellular) {
            main.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            wanted = cellular;
                            offer();
                        }
                    });
        }

        @Override
        public void status(final Status s) {
            main.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            status = s;
                            foreground();
                        }
                    });
        }
    }

    private final class Process implements DaemonProcess.Listener {
        @Override
        public void started() {
            tell("");
        }

        @Override
        public void died(int code, long waitMillis) {
            tell(getString(R.string.dying, code, (waitMillis + 999) / 1000));
        }

        private void tell(final String what) {
            main.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            trouble = what;
                        }
                    });
        }
    }

    private void foreground() {
        Notification n = notification();
        if (Build.VERSION.SDK_INT >= 34) {
            startForeground(NOTIFICATION, n, ServiceInfo.FOREGROUND_SERVICE_TYPE_SPECIAL_USE);
        } else {
            startForeground(NOTIFICATION, n);
        }
    }

    private Notification notification() {
        PendingIntent open =
                PendingIntent.getActivity(this, 0, new Intent(this, MainActivity.class), PendingIntent.FLAG_IMMUTABLE);
        PendingIntent stop =
                PendingIntent.getService(
                        this, 0, new Intent(this, ProxyService.class).setAction(STOP), PendingIntent.FLAG_IMMUTABLE);
        return new Notification.Builder(this, CHANNEL)
                .setSmallIcon(R.drawable.icon)
                .setContentTitle(getString(R.string.app_name))
                .setContentText(summary())
                .setContentIntent(open)
                .setOngoing(true)
                .setOnlyAlertOnce(true)
                .addAction(new Notification.Action.Builder(null, getString(R.string.stop), stop).build())
                .build();
    }

    private String summary() {
        if (status == null || status.transfers == 0) {
            return getString(R.string.notification_idle);
        }
        String text = getString(R.string.notification, Formatter.formatFileSize(this, status.rate()), status.transfers);
        for (Status.Link l : status.links) {
            if (l.monthlyLeft >= 0) {
                return getString(R.string.notification_left, text, Formatter.formatFileSize(this, l.monthlyLeft));
            }
        }
        return text;
    }
}
