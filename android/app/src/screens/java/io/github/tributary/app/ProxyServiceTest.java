package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Notification;
import android.app.NotificationManager;
import android.app.Service;
import android.app.job.JobScheduler;
import android.content.Context;
import android.content.Intent;
import android.net.ConnectivityManager;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.ProxyInfo;
import android.net.wifi.WifiManager;
import android.os.Build;
import android.os.Handler;
import android.os.Looper;
import android.os.PowerManager;
import android.provider.MediaStore;
import io.github.tributary.core.Announcer;
import io.github.tributary.core.AppAccess;
import io.github.tributary.core.BatteryMeter;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.Fetcher;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.Invitation;
import io.github.tributary.core.Limits;
import io.github.tributary.core.LinkRow;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.Reach;
import io.github.tributary.core.Source;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowNetwork;
import org.robolectric.shadows.ShadowPowerManager;

/** The service: what it starts, what it offers, what it shows. */
@RunWith(RobolectricTestRunner.class)
public class ProxyServiceTest {
    @Rule public final EndsDownloads ends = new EndsDownloads();

    /** A service whose daemon is a shell. */
    public static class Shell extends ProxyService {
        Daemon.Listener told;
        private List<String> command;
        private int bridges;
        private boolean refused; // by the system, to run in the foreground

        @Override
        boolean foreground() {
            return !refused && super.foreground();
        }

        @Override
        Daemon daemon(Daemon.Listener l) {
            told = l;
            return new Daemon(this, null, new Handler(Looper.getMainLooper()), l) {
                @Override
                Closeable openHost(File socket) {
                    return () -> {};
                }

                @Override
                void stop(HostSession session) {
                    try {
                        new File(getFilesDir(), "die").createNewFile(); // like a daemon that is told to stop
                    } catch (IOException e) {
                        throw new IllegalStateException(e);
                    }
                    super.stop(session);
                }

                @Override
                List<String> command(File socket) {
                    command = super.command(socket);
                    return Arrays.asList("/bin/sh", "-c", "touch started; while [ ! -e die ]; do kill -0 $PPID || exit; sleep 0.02; done; rm die; exit 7");
                }
            };
        }

        @Override
        Announcer.Bridge bridge() {
            return new Announcer.Bridge() {
                @Override
                public void open() {
                    bridges++;
                }

                @Override
                public void close() {
                    bridges--;
                }
            };
        }
    }

    private static final int IDLE = 2; // requests: one for all networks, one for the default

    private final FakeNetworks networks = new FakeNetworks();
    private final List<String> lines = new CopyOnWriteArrayList<String>();
    private ServiceController<Shell> controller;
    private Shell service;
    private Settings settings;
    private HostSession session;

    @Before
    public void start() {
        controller = Robolectric.buildService(Shell.class).create();
        service = controller.get();
        settings = new Settings(service);
        settings.setRun(true);
        assertEquals(Service.START_STICKY, service.onStartCommand(new Intent(), 0, 1));
    }

    @After
    public void end() {
        controller.destroy();
    }

    private void attach() {
        session = new HostSession(lines::add, (handle, name) -> null, (handle, lookup) -> lookup.run(), service.told);
        service.told.attached(session);
    }

    private void bothNetworks() throws Exception {
        Network wifi = ShadowNetwork.newInstance(101);
        networks.tell(
                wifi,
                FakeNetworks.capabilities(
                        NetworkCapabilities.TRANSPORT_WIFI,
                        NetworkCapabilities.NET_CAPABILITY_VALIDATED,
                        NetworkCapabilities.NET_CAPABILITY_NOT_METERED),
                FakeNetworks.properties("wlan0", "192.168.1.2", 24));
        mobile();
    }

    private void mobile() throws Exception {
        networks.tell(
                ShadowNetwork.newInstance(102),
                FakeNetworks.capabilities(
                        NetworkCapabilities.TRANSPORT_CELLULAR,
                        NetworkCapabilities.NET_CAPABILITY_VALIDATED,
                        NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING),
                FakeNetworks.properties("rmnet0", "10.0.0.2", 32));
    }

    /** Returns the names of the links that the daemon was last told about. */
    private String offered() {
        String last = lines.get(lines.size() - 1);
        return (last.contains("wlan0") ? "wlan0 " : "") + (last.contains("rmnet0") ? "rmnet0" : "");
    }

    private void heard(String line) throws Exception {
        session.heard(line);
        shadowOf(Looper.getMainLooper()).idle();
    }

    private Notification notification() {
        NotificationManager manager = (NotificationManager) service.getSystemService(Context.NOTIFICATION_SERVICE);
        Notification n = shadowOf(manager).getNotification(1);
        return n != null ? n : shadowOf(service).getLastForegroundNotification();
    }

    private String shown() {
        return notification().extras.getCharSequence(Notification.EXTRA_TEXT).toString();
    }

    private void daemonStarts(File dir) throws InterruptedException {
        File flag = new File(dir, "started");
        for (int i = 0; i < 2000 && !flag.exists(); i++) {
            Thread.sleep(10);
        }
        assertTrue("the daemon does not start", flag.exists());
    }

    @Test
    public void runsInTheForeground() throws Exception {
        assertNotNull(shadowOf(service).getLastForegroundNotification());
        daemonStarts(service.getFilesDir());
    }

    @Test
    public void comesBackAfterAKill() throws Exception {
        daemonStarts(service.getFilesDir());
        controller.destroy();
        assertTrue(new File(service.getFilesDir(), "started").delete());
        controller = Robolectric.buildService(Shell.class).create();
        service = controller.get();
        assertEquals(Service.START_STICKY, service.onStartCommand(null, 0, 2)); // like the system
        daemonStarts(service.getFilesDir());
    }

    @Test
    public void mobileDataIsOfferedAfterConsentOnly() throws Exception {
        bothNetworks();
        attach();
        assertEquals("wlan0 ", offered());
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("wlan0 ", offered());
        heard("{\"type\":\"want\",\"cellular\":true}");
        assertEquals("mobile data is asked for without consent", IDLE, networks.callbacks());
        settings.setConsent(true);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("wlan0 rmnet0", offered());
        assertEquals("mobile data is not asked for", IDLE + 1, networks.callbacks());
        settings.setMode(MobilePolicy.Mode.WIFI_ONLY);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("wlan0 ", offered());
        assertEquals("mobile data is kept up", IDLE, networks.callbacks());
    }

    private void helps() {
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        settings.setConsent(true);
        shadowOf(Looper.getMainLooper()).idle();
    }

    @Test
    @Config(sdk = {29, 31, 34, 35, 36})
    public void roamingIsOfferedAfterItsOwnConsentOnly() throws Exception {
        helps();
        bothNetworks();
        attach();
        networks.tell(
                ShadowNetwork.newInstance(102),
                FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_CELLULAR, NetworkCapabilities.NET_CAPABILITY_VALIDATED),
                FakeNetworks.properties("rmnet0", "10.0.0.2", 32));
        assertEquals("wlan0 ", offered());
        assertTrue(Texts.use(service, ProxyService.links().get(1), null).contains("roaming"));
        settings.setRoaming(true);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("wlan0 rmnet0", offered());
    }

    @Test
    public void theDataSaverIsHeeded() throws Exception {
        helps();
        bothNetworks();
        attach();
        heard("{\"type\":\"want\",\"cellular\":true}");
        assertEquals(IDLE + 1, networks.callbacks());
        saver(ConnectivityManager.RESTRICT_BACKGROUND_STATUS_ENABLED);
        assertEquals("wlan0 ", offered());
        assertEquals("mobile data is kept up", IDLE, networks.callbacks());
        assertTrue(Texts.use(service, ProxyService.links().get(1), null).contains("Data Saver"));
        saver(ConnectivityManager.RESTRICT_BACKGROUND_STATUS_WHITELISTED);
        assertEquals("wlan0 rmnet0", offered());
    }

    /**
     * Battery Saver pauses mobile data beside Wi-Fi, until the user says otherwise. Without Wi-Fi the phone stays
     * online.
     */
    @Test
    public void batterySaverIsHeeded() throws Exception {
        helps();
        bothNetworks();
        attach();
        heard("{\"type\":\"want\",\"cellular\":true}");
        assertEquals("wlan0 rmnet0", offered());
        batterySaver(true);
        assertEquals("wlan0 ", offered());
        assertEquals("mobile data is kept up", IDLE, networks.callbacks());
        assertTrue(Texts.use(service, ProxyService.links().get(1), null).contains("Battery Saver is on"));
        networks.lose(ShadowNetwork.newInstance(101));
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("the phone is offline", "rmnet0", offered());
        bothNetworks();
        assertEquals("wlan0 ", offered());
        settings.setInBatterySaver(true);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("wlan0 rmnet0", offered());
        settings.setInBatterySaver(false);
        shadowOf(Looper.getMainLooper()).idle();
        batterySaver(false);
        assertEquals("wlan0 rmnet0", offered());
        assertEquals("mobile data is not asked for again", IDLE + 1, networks.callbacks());
    }

    private void batterySaver(boolean on) {
        shadowOf((PowerManager) service.getSystemService(Context.POWER_SERVICE)).setIsPowerSaveMode(on);
        service.sendBroadcast(new Intent(PowerManager.ACTION_POWER_SAVE_MODE_CHANGED));
        shadowOf(Looper.getMainLooper()).idle();
    }

    @Test
    public void aNewAddressEndsTheOldOne() {
        attach();
        String old = settings.gatewayToken();
        assertTrue(lines.toString(), lines.toString().contains(old));
        lines.clear();
        settings.renewGatewayToken();
        shadowOf(Looper.getMainLooper()).idle();
        assertNotEquals(old, settings.gatewayToken());
        assertTrue("the daemon keeps the old one: " + lines, lines.toString().contains("\"gateway\"") && lines.toString().contains(settings.gatewayToken()));
    }

    private void saver(int status) {
        shadowOf(networks.manager).setRestrictBackgroundStatus(status);
        service.sendBroadcast(new Intent(ConnectivityManager.ACTION_RESTRICT_BACKGROUND_CHANGED));
        shadowOf(Looper.getMainLooper()).idle();
    }

    @Test
    @Config(sdk = {29, 31, 34, 35, 36})
    public void aBlockedNetworkIsShown() throws Exception {
        bothNetworks();
        networks.block(ShadowNetwork.newInstance(101), true);
        attach();
        assertEquals("", offered());
        assertTrue(Texts.use(service, ProxyService.links().get(0), null).contains("blocks it"));
    }

    @Test
    public void theBackupComesWhenWifiBringsNothing() throws Exception {
        settings.setMode(MobilePolicy.Mode.MOBILE_BACKUP);
        settings.setConsent(true);
        bothNetworks();
        attach();
        heard("{\"type\":\"want\",\"cellular\":true}");
        String suspect = "{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"wlan0\",\"state\":\"suspect\"}],\"transfers\":[{}]}}";
        heard(suspect);
        assertEquals("a pause", "wlan0 ", offered());
        heard(suspect);
        assertEquals("wlan0 rmnet0", offered());
        assertEquals("mobile data is not asked for", IDLE + 1, networks.callbacks());
        heard(suspect.replace("suspect", "up"));
        assertEquals("wlan0 ", offered());
        assertEquals("mobile data is kept up", IDLE, networks.callbacks());
    }

    @Test
    public void theUserIsWarnedOnce() throws Exception {
        attach();
        NotificationManager manager = (NotificationManager) service.getSystemService(Context.NOTIFICATION_SERVICE);
        String status = "{\"type\":\"status\",\"status\":{\"accounts\":[{\"name\":\"cellular-1\",\"since\":\"2026-11-15\",\"monthly\":"
                + "{\"limit_bytes\":1000000000,\"left_bytes\":%d}}],\"transfers\":[{}]}}";
        heard(String.format(status, 300_000_000));
        assertNull(shadowOf(manager).getNotification("cellular-1 month 2026-11-15", 2));
        heard(String.format(status, 200_000_000));
        Notification n = shadowOf(manager).getNotification("cellular-1 month 2026-11-15", 2);
        assertEquals("80% of this month's data is used", n.extras.getCharSequence(Notification.EXTRA_TITLE).toString());
        assertTrue(n.extras.getCharSequence(Notification.EXTRA_TEXT).toString().startsWith("200 MB of 1.00 GB left"));
        manager.cancel("cellular-1 month 2026-11-15", 2);
        heard(String.format(status, 100_000_000));
        assertNull("warned again", shadowOf(manager).getNotification("cellular-1 month 2026-11-15", 2));
        String second = ",{\"name\":\"cellular-2\",\"since\":\"2026-11-15\",\"monthly\":{\"limit_bytes\":1000,\"left_bytes\":100}}],\"transfers\"";
        heard(String.format(status.replace("],\"transfers\"", second), 100_000_000));
        assertNotNull("another SIM", shadowOf(manager).getNotification("cellular-2 month 2026-11-15", 2));
        assertNull("warned again of the first", shadowOf(manager).getNotification("cellular-1 month 2026-11-15", 2));
        heard(String.format(status.replace("11-15", "12-15"), 100_000_000));
        assertNotNull("another month", shadowOf(manager).getNotification("cellular-1 month 2026-12-15", 2));
    }

    @Test
    public void mobileDataHasALongTail() throws Exception {
        helps();
        bothNetworks();
        attach();
        String status = "{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"wlan0\",\"bytes\":7},{\"name\":\"rmnet0\",\"bytes\":%d}]}}";
        heard(String.format(status, 0));
        assertEquals(BatteryMeter.WIFI_TAIL_MILLIS, App.downloads(service).tailMillis());
        heard(String.format(status, 1));
        assertEquals(BatteryMeter.MOBILE_TAIL_MILLIS, App.downloads(service).tailMillis());
    }

    @Test
    public void theChoiceOfAppsReachesTheDaemon() throws Exception {
        bothNetworks();
        attach();
        assertTrue(lines.get(lines.size() - 1).contains("\"metered\":\"none\""));
        settings.setApps(AppAccess.Choice.ALL, Collections.<String>emptySet());
        shadowOf(Looper.getMainLooper()).idle();
        assertTrue(lines.get(lines.size() - 1).contains("\"metered\":\"all\""));
    }

    /**
     * Apps that may not use mobile data are not sent to a proxy that has nothing else: they would be offline while the
     * phone is online.
     */
    @Test
    public void theProxyIsAnnouncedWhereItServes() throws Exception {
        settings.setReach(Reach.VPN);
        helps();
        bothNetworks();
        attach();
        heard("{\"type\":\"status\",\"status\":{}}");
        assertEquals(1, service.bridges);
        networks.lose(ShadowNetwork.newInstance(101));
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("rmnet0", offered());
        assertEquals("apps are offline", 0, service.bridges);
        settings.setApps(AppAccess.Choice.ALL, Collections.<String>emptySet());
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(1, service.bridges);
    }

    @Test
    public void aRelayIsPairedAfterTheNetworksAreKnown() throws Exception {
        settings.setRun(false);
        bothNetworks();
        App.relays(service).pair(Invitation.in("tributary://relay.example.com:443#" + repeat("k", 43) + "." + repeat("t", 32)));
        attach();
        assertTrue(lines.get(0).contains("\"gateway\"") && lines.get(0).contains(settings.gatewayToken()));
        assertTrue(lines.get(1).contains("\"links\"") && lines.get(lines.size() - 1).contains("\"pair\""));
        heard("{\"type\":\"status\",\"status\":{}}");
        service.onStartCommand(new Intent("io.github.tributary.HOLD"), 0, 2);
        assertFalse("it ends before the relay is paired", shadowOf(service).isStoppedBySelf());
        heard("{\"type\":\"paired\",\"id\":1,\"address\":\"relay.example.com:443\"}");
        assertTrue("nobody needs it any more", shadowOf(service).isStoppedBySelf());
        assertEquals("relay.example.com:443", settings.relay());
    }

    private static String repeat(String s, int n) {
        return new String(new char[n]).replace("\0", s);
    }

    @Test
    public void theLimitReachesTheDaemon() throws Exception {
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        settings.setConsent(true);
        settings.setLimits(new Limits(2_000_000_000L, 0, 1));
        bothNetworks();
        attach();
        assertTrue(lines.get(lines.size() - 1), lines.get(lines.size() - 1).contains("\"monthly_bytes\":2000000000"));
    }

    @Test
    public void showsWhatGoesOn() throws Exception {
        attach();
        String idle = shown();
        heard("{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"wlan0\",\"goodput_bytes_per_second\":2000000}],\"transfers\":[{}]}}");
        assertFalse(shown().equals(idle));
        assertTrue(shown(), shown().contains("1"));
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        settings.setConsent(true);
        bothNetworks();
        heard(
                "{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"wlan0\",\"goodput_bytes_per_second\":2000000,\"bytes\":9000000},"
                        + "{\"name\":\"rmnet0\",\"goodput_bytes_per_second\":1000000,\"bytes\":3000000,\"monthly_left_bytes\":5000000}],"
                        + "\"transfers\":[{}]}}");
        assertTrue(shown(), shown().startsWith("3.00 MB/s, 1 download"));
        String more = notification().extras.getCharSequence(Notification.EXTRA_BIG_TEXT).toString();
        assertTrue(more, more.contains("Wi-Fi: 2.00 MB/s, 9.00 MB\nMobile data: 1.00 MB/s, 3.00 MB, 5.00 MB left\nTotal: 12.00 MB"));
        heard("{\"type\":\"status\",\"status\":{\"links\":[],\"transfers\":[]}}");
        assertEquals(idle, shown());
    }

    @Test
    public void theSpentLimitIsShown() throws Exception {
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        settings.setConsent(true);
        attach();
        bothNetworks();
        heard(
                "{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"wlan0\",\"state\":\"up\"},"
                        + "{\"name\":\"rmnet0\",\"state\":\"down\",\"reason\":\"its data for this month is spent\",\"bytes\":3000000,\"monthly_left_bytes\":0}],"
                        + "\"transfers\":[{}]}}");
        String more = notification().extras.getCharSequence(Notification.EXTRA_BIG_TEXT).toString();
        assertTrue(more, more.contains("3.00 MB, 0 B left"));
        List<LinkRow> rows = ProxyService.links();
        assertEquals("disconnected, 3.00 MB so far, 0 B left (limit reached)", Texts.use(service, rows.get(1), ProxyService.status()));
        assertEquals("in use, 0 B so far", Texts.use(service, rows.get(0), ProxyService.status()));
        heard("{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"wlan0\",\"state\":\"banned\",\"reason\":\"dial_failed\"},"
                + "{\"name\":\"rmnet0\",\"state\":\"down\",\"reason\":\"of later\"}],\"transfers\":[{}]}}");
        rows = ProxyService.links();
        String failed = "failing; will be retried soon, 0 B so far (cannot reach the server)";
        assertEquals(failed, Texts.use(service, rows.get(0), ProxyService.status()));
        assertTrue("a code that is not known yet is lost", Texts.use(service, rows.get(1), ProxyService.status()).endsWith("(of later)"));
    }

    private String systemProxy() {
        return android.provider.Settings.Global.getString(service.getContentResolver(), "http_proxy");
    }

    private void listens() throws Exception {
        heard("{\"type\":\"status\",\"status\":{\"links\":[],\"transfers\":[]}}");
    }

    /** Makes the system's proxy ours. */
    private void named() throws Exception {
        settings.setReach(Reach.SETTING);
        bothNetworks();
        attach();
        assertNull("apps are sent to a proxy that may not listen", systemProxy());
        listens();
        assertEquals("127.0.0.1:8080", systemProxy());
    }

    @Test
    public void appsAreToldWhileItListens() throws Exception {
        named();
        settings.setReach(Reach.BY_HAND);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(":0", systemProxy());
        settings.setReach(Reach.VPN);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(1, service.bridges);
        controller.destroy();
        assertEquals(0, service.bridges);
        controller = Robolectric.buildService(Shell.class).create();
    }

    @Test
    public void aDownloadAloneNamesNoProxy() throws Exception {
        App.downloads(service).add("https://example.com/a.iso");
        settings.setRun(false);
        service.onStartCommand(new Intent("io.github.tributary.HOLD"), 0, 2);
        settings.setReach(Reach.SETTING);
        bothNetworks();
        attach();
        listens();
        assertNull("nobody wants the proxy", systemProxy());
        settings.setReach(Reach.VPN);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("nobody wants the proxy", 0, service.bridges);
        settings.setRun(true);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(1, service.bridges);
        settings.setRun(false);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("stopped while a download runs", 0, service.bridges);
    }

    private int planned() {
        return ((JobScheduler) service.getSystemService(Context.JOB_SCHEDULER_SERVICE)).getAllPendingJobs().size();
    }

    @Test
    public void theSystemBeginsAKilledProcessAgain() throws Exception {
        assertEquals(1, planned());
        Restart restart = Robolectric.buildService(Restart.class).create().get();
        shadowOf(RuntimeEnvironment.getApplication()).clearStartedServices();
        restart.onStartJob(null);
        assertNull("it runs", shadowOf(RuntimeEnvironment.getApplication()).getNextStartedService());
        controller.destroy(); // like a kill: the user still wants it
        restart.onStartJob(null);
        assertNotNull("it stays dead", shadowOf(RuntimeEnvironment.getApplication()).getNextStartedService());
        assertEquals("once only", 1, planned());
        settings.setRun(false);
        restart.onStartJob(null);
        assertNull("nobody wants it", shadowOf(RuntimeEnvironment.getApplication()).getNextStartedService());
        assertEquals("the phone is kept awake for nothing", 0, planned());
        controller = Robolectric.buildService(Shell.class).create();
    }

    private void until(DownloadState.Phase phase, Downloads.Entry e) throws InterruptedException {
        for (int i = 0; i < 2000 && e.state().phase != phase; i++) {
            Thread.sleep(10);
            shadowOf(Looper.getMainLooper()).idle();
        }
        assertEquals(phase, e.state().phase);
    }

    @Test
    public void downloadsGoOnWhenANetworkReturns() throws Exception {
        Robolectric.setupContentProvider(FakeMedia.class, MediaStore.AUTHORITY);
        Downloads downloads = App.downloads(service);
        Downloads.Entry e = downloads.add("https://example.com/a.iso");
        downloads.suspendAll();
        until(DownloadState.Phase.LATER, e);
        bothNetworks();
        assertTrue("it waits for a tap", e.state().active());
        ProxyService.stop(service);
        until(DownloadState.Phase.PAUSED, e);
    }

    @Test
    public void whatKeepsToWifiWaitsForIt() throws Exception {
        Robolectric.setupContentProvider(FakeMedia.class, MediaStore.AUTHORITY);
        settings.setConsent(true);
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        Downloads downloads = App.downloads(service);
        Downloads.Entry all = downloads.add("https://example.com/a.iso");
        Downloads.Entry free = downloads.add(Source.of("https://example.com/b.iso"), true);
        downloads.suspendAll();
        until(DownloadState.Phase.LATER, all);
        until(DownloadState.Phase.LATER, free);
        mobile();
        assertTrue("it waits for Wi-Fi", all.state().active());
        assertEquals("mobile data does not help it", DownloadState.Phase.LATER, free.state().phase);
        bothNetworks();
        assertTrue("it waits for a tap", free.state().active());
        ProxyService.stop(service);
        until(DownloadState.Phase.PAUSED, free);
    }

    @Test
    public void aJobKeepsItAndItsEndPausesNothing() throws Exception {
        Robolectric.setupContentProvider(FakeMedia.class, MediaStore.AUTHORITY);
        controller.destroy();
        settings.setRun(false);
        controller = Robolectric.buildService(Shell.class).create();
        service = controller.get();
        service.refused = true; // like Android 12 in the background
        controller.bind();
        assertTrue("nothing runs", ProxyService.runs());
        Downloads.Entry e = App.downloads(service).add("https://example.com/a.iso");
        service.onStartCommand(new Intent("io.github.tributary.HOLD"), 0, 2);
        assertTrue("nothing runs", ProxyService.runs());
        controller.destroy();
        until(DownloadState.Phase.LATER, e);
        App.downloads(service).remove(e);
        controller = Robolectric.buildService(Shell.class).create();
    }

    @Test
    public void nothingIsPlannedAfterAStop() {
        settings.setRun(false);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(0, planned());
    }

    @Test
    public void whoMayNotComeBackSaysSo() {
        NotificationManager manager = (NotificationManager) service.getSystemService(Context.NOTIFICATION_SERVICE);
        service.refused = true; // like Android 12 in the background
        service.onStartCommand(null, 0, 2);
        Notification n = shadowOf(manager).getNotification(3);
        assertNotNull("nobody is told", n);
        assertEquals("io.github.tributary.app.StartActivity", shadowOf(n.contentIntent).getSavedIntent().getComponent().getClassName());
        service.refused = false;
        service.onStartCommand(new Intent(), 0, 3);
        assertNull("it runs", shadowOf(manager).getNotification(3));
    }

    @Test
    public void appsAreNotToldWithoutANetwork() throws Exception {
        named();
        networks.lose(ShadowNetwork.newInstance(101));
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("no network could be found any more", ":0", systemProxy());
    }

    @Test
    public void theProxyIsTakenBackAtTheEnd() throws Exception {
        named();
        controller.destroy();
        assertEquals(":0", systemProxy());
        controller = Robolectric.buildService(Shell.class).create();
    }

    @Test
    public void theProxyIsTakenBackWhenTheDaemonDies() throws Exception {
        named();
        daemonStarts(service.getFilesDir());
        assertTrue(new File(service.getFilesDir(), "die").createNewFile());
        for (int i = 0; i < 2000 && "127.0.0.1:8080".equals(systemProxy()); i++) {
            Thread.sleep(10);
            shadowOf(Looper.getMainLooper()).idle();
        }
        assertEquals(":0", systemProxy());
        assertTrue(shown(), shown().contains("7"));
        attach();
        listens();
        assertEquals("it is back", "127.0.0.1:8080", systemProxy());
    }

    @Test
    public void theProxyIsTakenBackAfterAKill() throws Exception {
        named();
        RuntimeEnvironment.getApplication().onCreate(); // in the next process
        assertEquals(":0", systemProxy());
    }

    @Test
    public void theProxyIsTakenBackByAProcessThatCrashes() throws Exception {
        named();
        Thread.getDefaultUncaughtExceptionHandler().uncaughtException(Thread.currentThread(), new IllegalStateException("a fault"));
        bothNetworks(); // the main thread runs on for a while
        assertEquals(":0", systemProxy());
    }

    @Test
    public void everyAppIsLetIn() {
        List<String> c = service.command;
        assertEquals("all", c.get(c.indexOf("--allow-users") + 1));
    }

    @Test
    public void runsForDownloadsOnly() {
        Robolectric.setupContentProvider(FakeMedia.class, MediaStore.AUTHORITY);
        Downloads downloads = App.downloads(service);
        Downloads.Entry e = downloads.add("https://example.com/a.iso");
        settings.setRun(false);
        assertEquals("nobody wants it after a kill", Service.START_NOT_STICKY, service.onStartCommand(new Intent("io.github.tributary.HOLD"), 0, 2));
        assertFalse("while a download runs", shadowOf(service).isStoppedBySelf());
        downloads.remove(e);
        assertTrue("held for nothing", shadowOf(service).isStoppedBySelf());
    }

    @Test
    public void doesNotComeBackForNobody() {
        settings.setRun(false);
        assertEquals(Service.START_NOT_STICKY, service.onStartCommand(null, 0, 2));
        assertTrue("nobody wants it after a kill", shadowOf(service).isStoppedBySelf());
    }

    private int wifiLocks() {
        return shadowOf((WifiManager) service.getSystemService(Context.WIFI_SERVICE)).getActiveLockCount();
    }

    @Test
    public void staysAwakeForTransfers() throws Exception {
        attach();
        listens();
        PowerManager.WakeLock lock = ShadowPowerManager.getLatestWakeLock();
        assertFalse("awake for nothing", lock.isHeld());
        heard("{\"type\":\"status\",\"status\":{\"links\":[],\"transfers\":[{}]}}");
        assertTrue(lock.isHeld());
        assertEquals("Wi-Fi sleeps with the screen", Build.VERSION.SDK_INT < 34 ? 1 : 0, wifiLocks());
        shadowOf(Looper.getMainLooper()).idleFor(Awake.MILLIS, TimeUnit.MILLISECONDS);
        assertEquals("Wi-Fi is awake for ever", 0, wifiLocks());
        heard("{\"type\":\"status\",\"status\":{\"links\":[],\"transfers\":[{}]}}");
        controller.destroy();
        assertFalse("awake for ever", lock.isHeld());
        assertEquals("Wi-Fi is awake for ever", 0, wifiLocks());
        controller = Robolectric.buildService(Shell.class).create();
    }

    @Test
    public void staysAwakeUntilADownloadIsTriedAgain() throws Exception {
        Robolectric.setupContentProvider(FakeMedia.class, MediaStore.AUTHORITY);
        attach();
        Downloads.Entry e = App.downloads(service).add("https://example.com/a"); // nobody answers
        App.fetches(service).session(null);
        for (int i = 0; i < 2_000 && e.state().phase != DownloadState.Phase.WAITING; i++) {
            Thread.sleep(10);
            shadowOf(Looper.getMainLooper()).idle();
        }
        assertEquals(DownloadState.Phase.WAITING, e.state().phase);
        assertTrue("it waits until somebody looks at the phone", ShadowPowerManager.getLatestWakeLock().isHeld());
    }

    @Test
    public void filesAreHandedToTheDaemonThatRuns() throws Exception {
        attach();
        App.fetches(service).fill(DownloadState.begin("https://example.com/a"), null, null);
        assertEquals("{\"type\":\"fetch\",\"id\":1}\n", lines.get(lines.size() - 1));
        controller.destroy();
        controller = Robolectric.buildService(Shell.class).create();
        assertThrows(Fetcher.Failed.class, () -> App.fetches(service).fill(DownloadState.begin("https://example.com/b"), null, null));
    }

    @Test
    public void aNetworkWithOurProxyIsOffered() throws Exception {
        attach();
        LinkProperties p = FakeNetworks.properties("wlan0", "192.168.1.2", 24);
        NetworkCapabilities free = FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_WIFI, NetworkCapabilities.NET_CAPABILITY_NOT_METERED);
        networks.tell(ShadowNetwork.newInstance(101), free, p);
        assertEquals("", offered());
        p.setHttpProxy(ProxyInfo.buildDirectProxy("127.0.0.1", 8080));
        networks.tell(ShadowNetwork.newInstance(101), free, p);
        assertEquals("the system asks through us whether it leads out", "wlan0 ", offered());
    }

    @Test
    public void stopsFromTheNotification() {
        settings.setRun(true);
        service.onStartCommand(new Intent("io.github.tributary.STOP"), 0, 2);
        assertFalse(settings.run());
        assertTrue(shadowOf(service).isStoppedBySelf());
    }
}
