package io.github.tributary.app;

import static org.robolectric.Shadows.shadowOf;

import android.content.Context;
import android.content.pm.PackageManager;
import android.content.Intent;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.os.Looper;
import android.telephony.TelephonyManager;
import io.github.tributary.core.BatteryMeter;
import io.github.tributary.core.BatteryScale;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.Failure;
import io.github.tributary.core.Fetcher;
import io.github.tributary.core.FolderFiles;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.Net;
import io.github.tributary.core.Shares;
import io.github.tributary.core.Target;
import io.github.tributary.core.Version;
import java.io.Closeable;
import java.io.File;
import java.io.FileDescriptor;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.json.JSONArray;
import org.robolectric.Robolectric;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.shadows.ShadowNetwork;
import org.robolectric.util.ReflectionHelpers;

/** What runs while the screens are inspected: networks, a daemon that reports, downloads. */
final class Scene implements Closeable {
    private static final long MB = 1_000_000;

    final Context context = RuntimeEnvironment.getApplication();
    final Settings settings = new Settings(context);
    private final FakeNetworks networks = new FakeNetworks();
    private ServiceController<ProxyServiceTest.Shell> controller;
    private HostSession session; // null = nothing runs
    private int seconds; // for which the networks have brought data
    private long wifi;
    private long mobile;

    Scene() {
        settings.setWelcomed();
        settings.setMode(MobilePolicy.Mode.WIFI_ONLY); // set here, otherwise the first start asks
        shadowOf(context.getPackageManager()).setSystemFeature(PackageManager.FEATURE_TELEPHONY, true);
        TelephonyManager phone = (TelephonyManager) context.getSystemService(Context.TELEPHONY_SERVICE);
        shadowOf(phone).setSimState(TelephonyManager.SIM_STATE_READY);
        shadowOf(phone).setDataEnabled(true);
    }

    void mobileAllowed() {
        settings.setConsent(true);
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
    }

    void starts() {
        settings.setRun(true);
        controller = Robolectric.buildService(ProxyServiceTest.Shell.class).create();
        controller.get().onStartCommand(new Intent(), 0, 1);
        session = new HostSession(line -> {}, (handle, name) -> null, (handle, lookup) -> lookup.run(), controller.get().told);
        controller.get().told.attached(session);
    }

    void wifi() {
        tell(101, NetworkCapabilities.TRANSPORT_WIFI, "wlan0", NetworkCapabilities.NET_CAPABILITY_VALIDATED, NetworkCapabilities.NET_CAPABILITY_NOT_METERED);
    }

    void mobile(int... more) {
        int[] has = new int[more.length + 1];
        has[0] = NetworkCapabilities.NET_CAPABILITY_VALIDATED;
        System.arraycopy(more, 0, has, 1, more.length);
        tell(102, NetworkCapabilities.TRANSPORT_CELLULAR, "rmnet0", has);
    }

    private void tell(int id, int transport, String name, int... has) {
        try {
            Network n = ShadowNetwork.newInstance(id);
            networks.tell(n, FakeNetworks.capabilities(transport, has), FakeNetworks.properties(name, "10.0.0." + id, 24));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        idle();
    }

    void blockMobile() {
        networks.block(ShadowNetwork.newInstance(102), true);
        idle();
    }

    void wanted() {
        heard("{\"type\":\"want\",\"cellular\":true}");
    }

    /** Plays a minute with two networks, the second of which arrives after 20 s. */
    void downloadsForAMinute() {
        for (int i = 0; i < 60; i++) {
            second();
        }
    }

    private void second() {
        long w = (long) ((4.2 + 0.9 * Math.sin(seconds / 4.0) + 0.4 * Math.sin(seconds * 1.7)) * MB);
        long m = seconds < 20 ? 0 : (long) ((2.8 + 0.5 * Math.sin(seconds / 3.0)) * Math.min(1, (seconds - 19) / 5.0) * MB);
        wifi += w;
        mobile += m;
        seconds++;
        report(w, wifi, m, mobile);
    }

    /** Sends what the daemon reports after a second. */
    void report(long wifiRate, long wifi, long mobileRate, long mobile) {
        shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        String link = "{\"name\":\"%s\",\"state\":\"up\",\"goodput_bytes_per_second\":%d,\"bytes\":%d%s}";
        String first = String.format(java.util.Locale.ROOT, link, "wlan0", wifiRate, wifi, "");
        String second = String.format(java.util.Locale.ROOT, link, "rmnet0", mobileRate, mobile, ",\"monthly_left_bytes\":" + (2_000 * MB - mobile));
        heard("{\"type\":\"status\",\"status\":{\"links\":[" + first + "," + second + "],\"transfers\":[{}]}}");
    }

    private void heard(String line) {
        try {
            session.heard(line);
        } catch (org.json.JSONException e) {
            throw new IllegalStateException(e);
        }
        idle();
    }

    static void idle() {
        shadowOf(Looper.getMainLooper()).idle();
    }

    private static DownloadState state(String url, long size, long bytes, Shares brought) {
        Version v = new Version("\"v\"", "m", size, "p");
        return DownloadState.begin(url).with("/nowhere").at(new Fetcher.Step("", v, bytes, bytes, Shares.NONE)).with(brought);
    }

    private static Shares shares(long wifi, long mobile) {
        return Shares.NONE.plus(Net.Kind.WIFI, wifi * MB).plus(Net.Kind.CELLULAR, mobile * MB);
    }

    /** Returns the battery use for a download of 20 s. */
    private static BatteryMeter metered() {
        BatteryMeter m = new BatteryMeter();
        BatteryScale scale = new BatteryScale();
        for (int second = 0; second <= 20; second++) {
            m.add(scale.read(80, false, -520_000, 3_200_000, 3_900, Integer.MIN_VALUE), second * 1000L);
        }
        return m;
    }

    /** Makes a list of downloads: one that is running, and others, the oldest first. */
    void downloads(boolean all) throws Exception {
        JSONArray list = new JSONArray();
        if (all) {
            DownloadState gone = state("https://example.org/files/missing.zip", -1, 0, Shares.NONE);
            list.put(gone.in(DownloadState.Phase.FAILED, new Failure("not_found", "example.org", 404, "")).toJson().put("id", 101));
            DownloadState half = state("https://example.org/maps/europe.osm.pbf", 3_100 * MB, 1_240 * MB, shares(900, 340));
            list.put(half.in(DownloadState.Phase.PAUSED).toJson().put("id", 102));
            list.put(state("https://example.org/podcast-112.mp3", 64 * MB, 24 * MB, shares(24, 0)).toJson().put("id", 103));
        }
        DownloadState done = state("https://example.org/manual.pdf", 18 * MB, 18 * MB, shares(11, 7));
        list.put(done.in(DownloadState.Phase.DONE).toJson().put("id", 104).put("used", metered().use().toJson()));
        context.getSharedPreferences("downloads", Context.MODE_PRIVATE).edit().putString("list", list.toString()).commit();
        Running running = new Running();
        Downloads downloads = running.downloads(context);
        ReflectionHelpers.setField(context, "downloads", downloads);
        downloads.add("https://cdimage.example.org/debian-13.2.0-amd64-DVD-1.iso");
        running.at(390, 274);
        for (int i = 0; i < 6; i++) {
            if (session == null) {
                shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
            } else {
                second();
            }
        }
        running.at(421, 295);
    }

    /** Returns a test of the first run that uses the scene's fetcher. */
    Running test() {
        Running running = new Running();
        ReflectionHelpers.setField(
                context,
                "test",
                new TestRun(context) {
                    @Override
                    Fetcher fetcher() {
                        return running;
                    }
                });
        return running;
    }

    /** A download whose progress the test sets. */
    static final class Running implements Fetcher {
        private final CountDownLatch begun = new CountDownLatch(1);
        private Listener listener;

        Downloads downloads(Context context) {
            return new Downloads(context) {
                @Override
                Fetcher fetcher() {
                    return Running.this;
                }

                @Override
                Target.Files files() {
                    File dir = new File(context.getCacheDir(), "scene");
                    dir.mkdirs();
                    return new FolderFiles(dir);
                }

                @Override
                void hold() {}
            };
        }

        void at(long wifi, long mobile) throws InterruptedException {
            begun.await(10, TimeUnit.SECONDS);
            long bytes = (wifi + mobile) * MB;
            listener.at(new Step("", new Version("\"v\"", "m", 3_990 * MB, "p"), bytes, bytes, shares(wifi, mobile)));
            idle();
        }

        @Override
        public Fill fill(DownloadState from, FileDescriptor file, Listener l) {
            listener = l;
            begun.countDown();
            return new Fill() {
                private final CountDownLatch stopped = new CountDownLatch(1);

                @Override
                public boolean await() throws InterruptedException {
                    stopped.await();
                    return false;
                }

                @Override
                public void stop() {
                    stopped.countDown();
                }
            };
        }
    }

    @Override
    public void close() {
        App.downloads(context).pauseAll();
        if (controller != null) {
            controller.destroy();
        }
    }
}
