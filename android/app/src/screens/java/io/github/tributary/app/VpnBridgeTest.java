package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.content.Intent;
import android.net.ProxyInfo;
import android.net.VpnService;
import android.os.Looper;
import io.github.tributary.core.Reach;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;
import org.robolectric.util.ReflectionHelpers;

/** The VPN that names the proxy. Only a phone can show what the system does with it. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {29, 31, 34, 35, 36}) // earlier versions have no bridge
public class VpnBridgeTest {
    private final VpnBridge bridge = Robolectric.buildService(VpnBridge.class).create().get();

    @Test
    public void namesTheProxyAndCarriesNothing() throws Exception {
        final List<String> left = new ArrayList<String>();
        VpnService.Builder b =
                bridge.configure(
                        bridge.new Builder() {
                            @Override
                            public VpnService.Builder addDisallowedApplication(String name) { // needs a missing service
                                left.add(name);
                                return this;
                            }
                        });
        Object config = ReflectionHelpers.getField(b, "mConfig");
        ProxyInfo proxy = ReflectionHelpers.getField(config, "proxyInfo");
        assertEquals("127.0.0.1", proxy.getHost());
        assertEquals(8080, proxy.getPort());
        assertTrue("our sockets would go into it", left.contains("io.github.tributary"));
        assertTrue("Android Auto refuses VPNs", left.contains("com.google.android.projection.gearhead"));
        assertTrue("apps that bind to Wi-Fi get errors", ReflectionHelpers.<Boolean>getField(config, "allowBypass"));
        assertTrue("printers go by the proxy", Arrays.asList(proxy.getExclusionList()).containsAll(Arrays.asList("*.local", "192.168.*", "172.31.*")));
        new Settings(bridge).setAround(Collections.singleton("org.example.browser"));
        left.clear();
        bridge.configure(b);
        assertEquals(Arrays.asList("org.example.browser", "io.github.tributary"), left);
        assertTrue("IPv4 is blocked", ReflectionHelpers.<Boolean>getField(config, "allowIPv4"));
        assertTrue("IPv6 is blocked", ReflectionHelpers.<Boolean>getField(config, "allowIPv6"));
        assertFalse("every download would count as metered", ReflectionHelpers.<Boolean>getField(config, "isMetered"));
        assertEquals(0, ReflectionHelpers.<List<?>>getField(b, "mRoutes").size());
    }

    @Test
    public void endsWhenTheSystemSaysSo() {
        Settings settings = new Settings(bridge);
        settings.setReach(Reach.VPN);
        bridge.onStartCommand(new Intent(), 0, 1); // there is no VPN here
        assertEquals("what does not work is not shown as chosen", Reach.BY_HAND, settings.reach());
        assertTrue(shadowOf(bridge).isStoppedBySelf());
        settings.setReach(Reach.VPN);
        bridge.onRevoke();
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(Reach.BY_HAND, settings.reach());
        bridge.onDestroy();
    }
}
