package io.github.tributary.app;

import android.app.Notification;
import android.app.NotificationManager;
import android.app.Service;
import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.content.SharedPreferences;
import android.content.pm.ServiceInfo;
import android.net.ConnectivityManager;
import android.os.Binder;
import android.os.Build;
import android.os.Handler;
import android.os.IBinder;
import android.os.Looper;
import android.os.PowerManager;
import android.os.SystemClock;
import android.telephony.SubscriptionManager;
import android.util.Log;
import io.github.tributary.R;
import io.github.tributary.core.Announcer;
import io.github.tributary.core.AppAccess;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.LinkRow;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.MobileRow;
import io.github.tributary.core.Net;
import io.github.tributary.core.Offer;
import io.github.tributary.core.RateHistory;
import io.github.tributary.core.Status;
import io.github.tributary.core.Warnings;
import java.io.IOException;
import java.text.SimpleDateFormat;
import java.util.Collections;
import java.util.Date;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Keeps the daemon running in the foreground, with the networks that the user allows, and announces the proxy to apps.
 * The main thread owns all fields; other threads post to it.
 */
public class ProxyService extends Service {
    /** Where apps find the proxy. */
    static final String LISTEN = "127.0.0.1:8080";

    /** Where players find the objects downloaded for them. */
    static final String GATEWAY = "127.0.0.1:8081";

    static final String STOP = "io.github.tributary.STOP";

    private static final String TAG = "tributary";
    private static final String START = "io.github.tributary.START";
    private static final String HOLD = "io.github.tributary.HOLD";
    static final int NOTIFICATION = 1;
    private static final int PORT_IN_USE = 3; // exit code

    /** The service that the screen shows; null while nothing runs. Owned by the main thread. */
    private static ProxyService running;

    private final Handler main = new Handler(Looper.getMainLooper());
    private final NetworkHost networks = new NetworkHost();

    private Settings settings;
    private LinkWatcher watcher;
    private Daemon daemon; // null = not started
    private Awake awake;
    private Announcer announcer;
    private HostSession session; // with the running daemon; null = none
    private List<Net> present = Collections.emptyList();
    private Offer offer; // of the networks present; null = not started
    private Set<String> silent = Collections.emptySet(); // names of networks that bring nothing
    private boolean wanted; // whether the daemon wants mobile data
    private long askedMillis; // when mobile data was requested; 0 = it was not
    private final RateHistory history = new RateHistory();
    private Status status; // null = no report from the daemon yet: it may not listen
    private boolean online; // a network is usable
    private boolean free; // a network that costs nothing is usable
    private boolean planned; // the system keeps it running
    private int lastStart;
    private String trouble = "";

    private final SharedPreferences.OnSharedPreferenceChangeListener changes =
            new SharedPreferences.OnSharedPreferenceChangeListener() {
                @Override
                public void onSharedPreferenceChanged(SharedPreferences prefs, String key) {
                    if (Settings.GATEWAY.equals(key) && session != null) {
                        session.gateway(settings.gatewayToken()); // the old one no longer works
                    }
                    offer();
                }
            };

    private final BroadcastReceiver saver =
            new BroadcastReceiver() {
                @Override
                public void onReceive(Context context, Intent intent) {
                    offer();
                }
            };

    private final Downloads.Listener downloads =
            new Downloads.Listener() {
                @Override
                public void changed(Downloads.Entry e) {
                    if (e.state().phase == DownloadState.Phase.WAITING && running == ProxyService.this) {
                        awake.hold(); // else it waits until the phone is used
                    }
                    release();
                }
            };

    /**
     * Starts it at the user's request, until stop. Returns false if the system does not let an app start by itself at
     * this point.
     */
    static boolean start(Context context) {
        try {
            context.startForegroundService(new Intent(context, ProxyService.class).setAction(START));
        } catch (IllegalStateException e) {
            Log.w(TAG, "not started", e);
            return false;
        }
        new Settings(context).setRun(true);
        return true;
    }

    static void stop(Context context) {
        new Settings(context).setRun(false);
        App.downloads(context).pauseAll();
        context.stopService(new Intent(context, ProxyService.class));
    }

    /** Starts it for downloads, until none runs. */
    static void hold(Context context) {
        try {
            context.startForegroundService(new Intent(context, ProxyService.class).setAction(HOLD));
        } catch (IllegalStateException e) { // the downloads retry, and fail in the end
            Log.w(TAG, "not started", e);
        }
    }

    /** Returns whether it runs, whoever started it. */
    static boolean runs() {
        return running != null;
    }

    private static boolean free(List<Net> offered) {
        for (Net n : offered) {
            if (!n.costs()) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether there are usable networks, and all of them may cost money. */
    static boolean allCost() {
        return running != null && running.online && !running.free;
    }

    /** Returns the networks present; empty while it does not run. */
    static List<LinkRow> links() {
        ProxyService s = running;
        if (s == null) {
            return Collections.emptyList();
        }
        return LinkRow.rows(s.offer, s.status);
    }

    /** Returns the recent rate of each network; null while the daemon has not reported anything. */
    static RateHistory rates() {
        return running == null || running.status == null ? null : running.history;
    }

    /** Returns what to show about mobile data without a network; NONE while it does not run. */
    static MobileRow mobile() {
        ProxyService s = running;
        if (s == null || s.offer == null) {
            return MobileRow.NONE;
        }
        String account = Net.account(SubscriptionManager.getDefaultDataSubscriptionId());
        boolean spent = s.status != null && s.status.spent(account);
        return MobileRow.of(s.offer, s.settings.policy(), Phone.now(s), s.saving(), spent, s.askedMillis, SystemClock.elapsedRealtime());
    }

    /** Returns the daemon's last status; null = none yet, or it does not run. */
    static Status status() {
        return running == null ? null : running.status;
    }

    /** Returns why it does not run as it should; "" = it does. */
    static String trouble() {
        if (running == null) {
            return "";
        }
        return running.announcer.refused() ? running.getString(R.string.reach_refused, running.getPackageName()) : running.trouble;
    }

    @Override
    public void onCreate() {
        super.onCreate();
        ProxyNotification.channel(this);
    }

    @Override
    public IBinder onBind(Intent intent) { // by a job, which may not bring it to the foreground but keeps the process
        settings = new Settings(this);
        if (daemon == null) {
            begin();
        }
        return new Binder();
    }

    @Override
    public int onStartCommand(Intent intent, int flags, int id) {
        settings = new Settings(this);
        String action = intent == null ? null : intent.getAction();
        if (STOP.equals(action)) {
            settings.setRun(false);
            App.downloads(this).pauseAll();
        }
        boolean wanted = settings.run() || START.equals(action) || HOLD.equals(action);
        lastStart = id;
        if (!foreground()) {
            if (settings.run()) {
                ProxyNotification.ended(this);
            }
            stopSelf(id);
            return START_NOT_STICKY;
        }
        if (!wanted) {
            stopSelf(id);
            return START_NOT_STICKY;
        }
        ProxyNotification.runs(this);
        if (daemon == null) {
            begin();
        }
        release();
        return settings.run() ? START_STICKY : START_NOT_STICKY; // after a kill it restarts if the user wants that
    }

    /** Stops it unless the user started it, or downloads need it. */
    private void release() {
        if (!settings.run() && !App.downloads(this).active() && !App.relays(this).busy()) {
            stopSelf(lastStart); // has no effect if another start is pending
        }
    }

    private void begin() {
        daemon = daemon(new Told());
        try {
            daemon.start();
        } catch (IOException e) {
            Log.e(TAG, "host socket", e);
            stopSelf();
            return;
        }
        announcer = new Announcer(App.proxy(this), bridge());
        awake = new Awake(this, main);
        settings.listen(changes);
        IntentFilter savers = new IntentFilter(ConnectivityManager.ACTION_RESTRICT_BACKGROUND_CHANGED);
        savers.addAction(PowerManager.ACTION_POWER_SAVE_MODE_CHANGED);
        registerReceiver(saver, savers);
        App.downloads(this).listen(downloads);
        networks.begin((ConnectivityManager) getSystemService(CONNECTIVITY_SERVICE));
        watcher =
                new LinkWatcher(
                        (ConnectivityManager) getSystemService(CONNECTIVITY_SERVICE),
                        networks,
                        main,
                        new LinkWatcher.Listener() {
                            @Override
                            public void networks(List<Net> all) {
                                present = all;
                                offer();
                            }
                        });
        watcher.start();
        running = this;
        offer();
    }

    /** Returns the daemon, for a listener. */
    Daemon daemon(Daemon.Listener l) {
        return new Daemon(this, networks, main, l);
    }

    /** Returns the VPN that names the proxy to apps. */
    Announcer.Bridge bridge() {
        return new Announcer.Bridge() {
            @Override
            public void open() {
                if (Build.VERSION.SDK_INT >= 29) {
                    VpnBridge.open(ProxyService.this);
                }
            }

            @Override
            public void close() {
                if (Build.VERSION.SDK_INT >= 29) {
                    VpnBridge.close(ProxyService.this);
                }
            }
        };
    }

    /**
     * Tells the daemon which networks it may use, the system whether mobile data is wanted, and apps about the proxy.
     */
    private void offer() {
        MobilePolicy policy = settings.policy();
        offer = new Offer(present, policy, saving(), resting(), silent);
        List<Net> offered = offer.offered();
        boolean ask = offer.request(wanted);
        askedMillis = !ask ? 0 : askedMillis == 0 ? SystemClock.elapsedRealtime() : askedMillis;
        watcher.request(ask, policy.roaming);
        AppAccess apps = AppsChoice.access(this, settings);
        if (session != null) {
            session.offer(offered, policy.limits, SubscriptionManager.getDefaultDataSubscriptionId(), apps);
        }
        announcer.update(status != null && settings.run() && offer.serves(apps), !offered.isEmpty(), settings.reach());
        plan();
        boolean back = !online && !offered.isEmpty() || !free && free(offered);
        online = !offered.isEmpty();
        free = free(offered);
        if (back) {
            App.downloads(this).online();
        }
    }

    /** Makes the system restart it for as long as the user wants it to run. */
    private void plan() {
        if (planned == settings.run()) {
            return;
        }
        planned = settings.run();
        if (planned) {
            LastEnd.began(this);
            Restart.plan(this);
        } else {
            Restart.cancel(this);
        }
    }

    /** Returns whether the system's Data Saver is on, and the user has not exempted this app. */
    private boolean saving() {
        ConnectivityManager manager = (ConnectivityManager) getSystemService(CONNECTIVITY_SERVICE);
        return manager.getRestrictBackgroundStatus() == ConnectivityManager.RESTRICT_BACKGROUND_STATUS_ENABLED;
    }

    /**
     * Returns whether the system's Battery Saver is on, and the user has not allowed mobile data beside Wi-Fi during
     * that time.
     */
    private boolean resting() {
        return !settings.inBatterySaver() && ((PowerManager) getSystemService(POWER_SERVICE)).isPowerSaveMode();
    }

    /** Warns of limits that are nearly used up, once each. */
    private void warn(Status s) {
        Map<String, Status.Quota> due = Warnings.due(s, new SimpleDateFormat("yyyy-MM-dd", Locale.ROOT).format(new Date()));
        Set<String> warned = settings.warned();
        if (due.keySet().equals(warned)) {
            return;
        }
        for (Map.Entry<String, Status.Quota> e : due.entrySet()) {
            if (!warned.contains(e.getKey())) {
                ProxyNotification.warn(this, e.getKey(), e.getValue());
            }
        }
        settings.setWarned(due.keySet());
    }

    /** Called when there is no daemon to talk to. */
    private void gone() {
        App.fetches(this).session(null);
        App.relays(this).session(null);
        session = null;
        status = null;
        silent = Collections.emptySet();
        wanted = false;
        awake.release();
        offer();
    }

    @Override
    public void onDestroy() {
        if (running == this) {
            running = null;
            App.fetches(this).session(null);
            App.relays(this).session(null);
            settings.forget(changes);
            unregisterReceiver(saver);
            App.downloads(this).forget(downloads);
            App.downloads(this).suspendAll();
            awake.release();
            watcher.stop();
            announcer.update(false, false, settings.reach());
            if (!settings.run()) {
                Restart.cancel(this);
            }
            daemon.stop(session);
            ((NotificationManager) getSystemService(NOTIFICATION_SERVICE)).cancel(NOTIFICATION); // if not in the foreground
        }
        super.onDestroy();
    }

    /** Hears of the daemon, on the main thread. Reports after the end are ignored. */
    private final class Told implements Daemon.Listener {
        @Override
        public void attached(HostSession s) {
            if (running == ProxyService.this) {
                s.gateway(settings.gatewayToken());
                session = s;
                offer();
                App.fetches(ProxyService.this).session(s); // after the networks
                App.relays(ProxyService.this).session(s);
            }
        }

        @Override
        public void detached(HostSession s) {
            if (running == ProxyService.this && session == s) {
                gone();
            }
        }

        @Override
        public void wanted(boolean cellular) {
            if (running == ProxyService.this) {
                wanted = cellular;
                silent = Collections.emptySet(); // the daemon's report is about an earlier transfer
                offer();
            }
        }

        @Override
        public void answered(long id, String address, String code) {
            App.relays(ProxyService.this).answered(id, address, code);
            if (running == ProxyService.this) {
                release();
            }
        }

        @Override
        public void status(Status s) {
            if (running != ProxyService.this) {
                return;
            }
            boolean first = status == null;
            Set<String> now = wanted ? s.silent(status) : Collections.<String>emptySet();
            boolean changed = !now.equals(silent);
            silent = now;
            status = s;
            if (first || changed) { // first: the daemon has opened its port
                offer();
            }
            warn(s);
            if (s.transfers > 0) {
                history.add(SystemClock.elapsedRealtime(), links());
                awake.hold();
            }
            show();
        }

        @Override
        public void started() {
            if (running == ProxyService.this) {
                trouble = "";
                show();
            }
        }

        @Override
        public void died(int code, long waitMillis) {
            if (running == ProxyService.this) {
                long seconds = (waitMillis + 999) / 1000;
                trouble = code == PORT_IN_USE ? getString(R.string.port_in_use, LISTEN) : getString(R.string.dying, code, seconds);
                gone();
                show();
            }
        }
    }

    private void show() {
        NotificationManager manager = (NotificationManager) getSystemService(NOTIFICATION_SERVICE);
        manager.notify(NOTIFICATION, ProxyNotification.of(this, status, links(), trouble()));
    }

    /** Returns false if the system does not allow it, such as on a restart at a wrong moment. */
    boolean foreground() {
        Notification n = ProxyNotification.of(this, status, links(), trouble());
        try {
            if (Build.VERSION.SDK_INT >= 34) {
                startForeground(NOTIFICATION, n, ServiceInfo.FOREGROUND_SERVICE_TYPE_SPECIAL_USE);
            } else {
                startForeground(NOTIFICATION, n);
            }
            return true;
        } catch (IllegalStateException e) {
            Log.w(TAG, "not in the foreground", e);
            return false;
        }
    }
}
