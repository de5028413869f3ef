package io.github.tributary.app;

import static org.junit.Assert.assertEquals;

import android.net.ConnectivityManager;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.NetworkInfo;
import android.net.TelephonyNetworkSpecifier;
import android.os.Build;
import android.os.Handler;
import android.os.Looper;
import io.github.tributary.core.Net;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.Shadows;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowNetwork;
import org.robolectric.shadows.ShadowNetworkInfo;

/** How the system's callbacks change the list of networks. */
@RunWith(RobolectricTestRunner.class)
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
                                for (Net.Trait t : Net.Trait.values()) {
                                    b.append(n.is(t) ? " " + t.name().toLowerCase(Locale.ROOT) : "");
                                }
                                b.append(n.account().isEmpty() ? ";" : " " + n.account() + ";");
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
                FakeNetworks.capabilities(
                        NetworkCapabilities.TRANSPORT_CELLULAR,
                        NetworkCapabilities.NET_CAPABILITY_VALIDATED,
                        NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING),
                FakeNetworks.properties("rmnet0", "10.0.0.2", 32));
        assertEquals("rmnet0 cellular [10.0.0.2/32] metered validated cellular;", last());
        networks.tell(
                wifi,
                FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_WIFI, NetworkCapabilities.NET_CAPABILITY_NOT_METERED),
                FakeNetworks.properties("wlan0", "fe80::1%1", 64));
        assertEquals("wlan0 wifi [fe80::1/64];rmnet0 cellular [10.0.0.2/32] metered validated cellular;", last().replace("fe80:0:0:0:0:0:0:1", "fe80::1"));
        networks.lose(mobile);
        assertEquals("wlan0 wifi [fe80::1/64];", last().replace("fe80:0:0:0:0:0:0:1", "fe80::1"));
    }

    private static String account() {
        return Build.VERSION.SDK_INT >= 30 ? "cellular-3" : "cellular";
    }

    private void mobile(int... has) throws Exception {
        NetworkCapabilities c = FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_CELLULAR, has);
        if (Build.VERSION.SDK_INT >= 30) {
            Shadows.shadowOf(c).setNetworkSpecifier(new TelephonyNetworkSpecifier(3));
        }
        networks.tell(ShadowNetwork.newInstance(102), c, FakeNetworks.properties("rmnet0", "10.0.0.2", 32));
    }

    @Test
    @Config(sdk = {29, 31, 34, 35, 36})
    public void roamingIsSeen() throws Exception {
        mobile(NetworkCapabilities.NET_CAPABILITY_VALIDATED, NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        assertEquals("rmnet0 cellular [10.0.0.2/32] metered validated " + account() + ";", last());
        mobile(NetworkCapabilities.NET_CAPABILITY_VALIDATED);
        assertEquals("rmnet0 cellular [10.0.0.2/32] metered roaming validated " + account() + ";", last());
    }

    @Test
    @Config(sdk = 26)
    @SuppressWarnings("deprecation") // as that version reported it
    public void roamingIsSeenOnAndroid8() throws Exception {
        NetworkInfo info = ShadowNetworkInfo.newInstance(NetworkInfo.DetailedState.CONNECTED, ConnectivityManager.TYPE_MOBILE, 0, true, NetworkInfo.State.CONNECTED);
        Shadows.shadowOf(networks.manager).addNetwork(ShadowNetwork.newInstance(102), info);
        mobile(NetworkCapabilities.NET_CAPABILITY_VALIDATED);
        assertEquals("rmnet0 cellular [10.0.0.2/32] metered validated cellular;", last());
        info.setRoaming(true);
        mobile(NetworkCapabilities.NET_CAPABILITY_VALIDATED);
        assertEquals("rmnet0 cellular [10.0.0.2/32] metered roaming validated cellular;", last());
    }

    @Test
    @Config(sdk = {29, 31, 34, 35, 36})
    public void blockedNetworksAreSeen() throws Exception {
        mobile(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        networks.block(ShadowNetwork.newInstance(102), true);
        assertEquals("rmnet0 cellular [10.0.0.2/32] metered blocked " + account() + ";", last());
        networks.block(ShadowNetwork.newInstance(102), false);
        assertEquals("rmnet0 cellular [10.0.0.2/32] metered " + account() + ";", last());
    }

    /** A provider's satellite network also reports that it is mobile data. */
    @Test
    @Config(sdk = {35, 36})
    public void satellitesAreSeen() throws Exception {
        NetworkCapabilities c = FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_CELLULAR, NetworkCapabilities.NET_CAPABILITY_NOT_METERED);
        Shadows.shadowOf(c).addTransportType(10);
        networks.tell(ShadowNetwork.newInstance(103), c, FakeNetworks.properties("sat0", "10.0.0.2", 32));
        assertEquals("sat0 satellite [10.0.0.2/32] metered;", last());
    }

    /** The user may use a network that fails the system's test. The test takes some seconds to find a login page. */
    @Test
    public void theDefaultIsBelievedWhenTheTestIsOver() throws Exception {
        networks.tell(
                ShadowNetwork.newInstance(101),
                FakeNetworks.capabilities(NetworkCapabilities.TRANSPORT_WIFI, NetworkCapabilities.NET_CAPABILITY_NOT_METERED),
                FakeNetworks.properties("wlan0", "192.168.1.2", 24));
        assertEquals("wlan0 wifi [192.168.1.2/24];", last());
        Shadows.shadowOf(Looper.getMainLooper()).idleFor(10, TimeUnit.SECONDS);
        assertEquals("the test may not be over", "wlan0 wifi [192.168.1.2/24];", last());
        Shadows.shadowOf(Looper.getMainLooper()).idleFor(10, TimeUnit.SECONDS);
        assertEquals("wlan0 wifi [192.168.1.2/24] default;", last());
        networks.lose(ShadowNetwork.newInstance(101));
        assertEquals("", last());
    }

    @Test
    public void mobileDataIsRequestedAndLetGo() {
        assertEquals(2, networks.callbacks()); // for all networks, and for the default one
        watcher.request(false, false);
        assertEquals(2, networks.callbacks());
        watcher.request(true, false);
        watcher.request(true, false);
        assertEquals("asked for twice", 3, networks.callbacks());
        watcher.request(true, true);
        assertEquals("asked for twice", 3, networks.callbacks());
        watcher.request(false, true);
        assertEquals(2, networks.callbacks());
        watcher.request(true, false);
        watcher.stop();
        assertEquals("something is left", 0, networks.callbacks());
    }
}
