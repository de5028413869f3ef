package io.github.tributary.app;

import android.content.Context;
import android.net.ConnectivityManager;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.Shadows;
import org.robolectric.shadows.ShadowNetworkCapabilities;
import org.robolectric.util.ReflectionHelpers;
import org.robolectric.util.ReflectionHelpers.ClassParameter;

/** Networks that come and go as a test decides. */
final class FakeNetworks {
    final ConnectivityManager manager =
            (ConnectivityManager) RuntimeEnvironment.getApplication().getSystemService(Context.CONNECTIVITY_SERVICE);

    private List<ConnectivityManager.NetworkCallback> all() {
        return new ArrayList<ConnectivityManager.NetworkCallback>(Shadows.shadowOf(manager).getNetworkCallbacks());
    }

    /** Returns the number of requests that the system has. */
    int callbacks() {
        return all().size();
    }

    /** Reports to all callbacks whether they may use a network. */
    void block(Network n, boolean blocked) {
        for (ConnectivityManager.NetworkCallback callback : all()) {
            callback.onBlockedStatusChanged(n, blocked);
        }
    }

    /** Reports a network to everybody. */
    void tell(Network n, NetworkCapabilities c, LinkProperties p) {
        for (ConnectivityManager.NetworkCallback callback : all()) {
            callback.onAvailable(n);
            callback.onLinkPropertiesChanged(n, p);
            callback.onCapabilitiesChanged(n, c);
        }
    }

    void lose(Network n) {
        for (ConnectivityManager.NetworkCallback callback : all()) {
            callback.onLost(n);
        }
    }

    static NetworkCapabilities capabilities(int transport, int... has) {
        NetworkCapabilities c = ShadowNetworkCapabilities.newInstance();
        Shadows.shadowOf(c).addTransportType(transport);
        for (int capability : has) {
            Shadows.shadowOf(c).addCapability(capability);
        }
        return c;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static ClassParameter<?> parameter(Class<?> type, Object value) {
        return new ClassParameter(type, value);
    }

    static LinkProperties properties(String name, String address, int bits) throws Exception {
        LinkProperties p = new LinkProperties();
        p.setInterfaceName(name);
        Class<?> type = Class.forName("android.net.LinkAddress");
        Object a =
                ReflectionHelpers.callConstructor(
                        type,
                        ClassParameter.from(InetAddress.class, InetAddress.getByName(address)),
                        ClassParameter.from(int.class, bits));
        ReflectionHelpers.callInstanceMethod(p, "addLinkAddress", parameter(type, a));
        return p;
    }
}
