package io.github.tributary.app;

import static org.junit.Assert.assertEquals;

import android.net.Network;
import android.net.NetworkCapabilities;
import android.os.Handler;
import android.os.Looper;
import io.github.tributary.core.Net;
import java.util.ArrayList;
import java.util.List;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowNetwork;

/** What the system's callbacks make of the list of networks. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = 35)
public class LinkWatcherTest {
    private final List<String> seen = new ArrayList<String>();
    private final FakeNetworks networks = new FakeNetworks();
    private LinkWatcher watcher;

    @Before
    public void start() {
        watcher =
                new LinkWatcher(
                        networks.manager,
                        new NetworkHost(),
                        new Handler(Looper.getMainLooper()),
                        all -> {
                            StringBuilder b = new StringBuilder();
                            for (Net n : all) {
                                b.append(n.name).append(' ').append(n.kind.word).append(' ').append(n.addrs);
                                b.append(n.metered ? " metered" : "").append(n.validated ? " validated;" : ";");
                            }
                            seen.add(b.toString());
                        });
        watcher.start();
    }

    private String last() {
        return seen.get(seen.size() - 1);
    }

    @Test
    public void networksComeAndGo() throws Exception {
        Network wifi = ShadowNetwork.newInstance(101);
        Network mobile = ShadowNetwork.newInstance(102);
        networks.tell(
                mobile,
                FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_CELLULAR, NetworkCapabilities.NET_CAPABILITY_VALIDATED),
                FakeNetworks.properties("rmnet0", "10.0.0.2", 32));
        assertEquals("rmnet0 cellular [10.0.0.2/32] metered validated;", last());
        networks.tell(
                wifi,
                FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_WIFI, NetworkCapabilities.NET_CAPABILITY_NOT_METERED),
                FakeNetworks.properties("wlan0", "fe80::1%1", 64));
        assertEquals("wlan0 wifi [fe80::1/64];rmnet0 cellular [10.0.0.2/32] metered validated;", last().replace("fe80:0:0:0:0:0:0:1", "fe80::1"));
        networks.lose(mobile);
        assertEquals("wlan0 wifi [fe80::1/64];", last().replace("fe80:0:0:0:0:0:0:1", "fe80::1"));
    }

    @Test
    public void mobileDataIsRequestedAndLetGo() {
        assertEquals(1, networks.callbacks());
        watcher.request(false);
        assertEquals(1, networks.callbacks());
        watcher.request(true);
        watcher.request(true);
        assertEquals("asked for twice", 2, networks.callbacks());
        watcher.request(false);
        assertEquals(1, networks.callbacks());
        watcher.request(true);
        watcher.stop();
        assertEquals("something is left", 0, networks.callbacks());
    }
}
