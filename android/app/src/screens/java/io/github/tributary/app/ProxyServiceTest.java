package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Notification;
import android.app.Service;
import android.content.Intent;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.os.Looper;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.MobilePolicy;
import java.io.Closeable;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowNetwork;

/** The service: what it starts, what it offers, what it shows. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = 35)
public class ProxyServiceTest {
    /** A service whose daemon is a shell. */
    public static class Shell extends ProxyService {
        @Override
        Closeable openHost(File socket) {
            return () -> {};
        }

        @Override
        List<String> command(File socket) {
            return Arrays.asList("/bin/sh", "-c", "touch started; sleep 60");
        }
    }

    private final FakeNetworks networks = new FakeNetworks();
    private final List<String> lines = new ArrayList<String>();
    private ServiceController<Shell> controller;
    private Shell service;
    private Settings settings;
    private HostSession session;

    @Before
    public void start() {
        controller = Robolectric.buildService(Shell.class).create();
        service = controller.get();
        settings = new Settings(service);
        assertEquals(Service.START_STICKY, service.onStartCommand(new Intent(), 0, 1));
    }

    @After
    public void end() {
        controller.destroy();
    }

    private void attach() {
        session = new HostSession(lines::add, (handle, name) -> null, Runnable::run, service.listener());
        service.attached(session);
    }

    private void bothNetworks() throws Exception {
        Network wifi = ShadowNetwork.newInstance(101);
        Network mobile = ShadowNetwork.newInstance(102);
        networks.tell(
                wifi,
                FakeNetworks.capabilities(
                        NetworkCapabilities.TRANSPORT_WIFI,
                        NetworkCapabilities.NET_CAPABILITY_VALIDATED,
                        NetworkCapabilities.NET_CAPABILITY_NOT_METERED),
                FakeNetworks.properties("wlan0", "192.168.1.2", 24));
        networks.tell(
                mobile,
                FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_CELLULAR, NetworkCapabilities.NET_CAPABILITY_VALIDATED),
                FakeNetworks.properties("rmnet0", "10.0.0.2", 32));
    }

    /** What the daemon was told last: the names of its links. */
    private String offered() {
        String last = lines.get(lines.size() - 1);
        return (last.contains("wlan0") ? "wlan0 " : "") + (last.contains("rmnet0") ? "rmnet0" : "");
    }

    private void heard(String line) throws Exception {
        session.heard(line);
        shadowOf(Looper.getMainLooper()).idle();
    }

    private String shown() {
        Notification n = shadowOf(service).getLastForegroundNotification();
        return n.extras.getCharSequence(Notification.EXTRA_TEXT).toString();
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
        assertEquals(Service.START_STICKY, service.onStartCommand(null, 0, 2)); // as the system does
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
        assertEquals("mobile data is asked for without consent", 1, networks.callbacks());
        settings.setConsent(true);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("wlan0 rmnet0", offered());
        assertEquals("mobile data is not asked for", 2, networks.callbacks());
        settings.setMode(MobilePolicy.Mode.WIFI_ONLY);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("wlan0 ", offered());
        assertEquals("mobile data is kept up", 1, networks.callbacks());
    }

    @Test
    public void theLimitReachesTheDaemon() throws Exception {
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        settings.setConsent(true);
        settings.setMonthlyBytes(2_000_000_000L);
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
        heard("{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"rmnet0\",\"monthly_left_bytes\":0}],\"transfers\":[{}]}}");
        assertTrue(shown(), shown().contains("mobile data left"));
        heard("{\"type\":\"status\",\"status\":{\"links\":[],\"transfers\":[]}}");
        assertEquals(idle, shown());
    }

    @Test
    public void stopsFromTheNotification() {
        settings.setRun(true);
        service.onStartCommand(new Intent("io.github.tributary.STOP"), 0, 2);
        assertFalse(settings.run());
        assertTrue(shadowOf(service).isStoppedBySelf());
    }
}
