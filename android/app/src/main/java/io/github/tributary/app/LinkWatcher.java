package io.github.tributary.app;

import android.annotation.TargetApi;
import android.net.ConnectivityManager;
import android.net.IpPrefix;
import android.net.LinkAddress;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.NetworkRequest;
import android.net.NetworkSpecifier;
import android.net.ProxyInfo;
import android.net.TelephonyNetworkSpecifier;
import android.os.Build;
import android.os.Handler;
import io.github.tributary.core.Net;
import io.github.tributary.core.NetworkTable;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * Watches the networks, and requests mobile data. Everything runs on one handler's thread, including calls of its
 * methods.
 */
final class LinkWatcher {
    private static final int SATELLITE = 10; // NetworkCapabilities.TRANSPORT_SATELLITE of Android 15
    private static final long TEST_MILLIS = 15_000; // the system waits 10 s for its test page

    /** Hears of the networks present. */
    interface Listener {
        void networks(List<Net> all);
    }

    private final ConnectivityManager manager;
    private final NetworkHost networks;
    private final Handler handler;
    private final Listener listener;
    private final NetworkTable table = new NetworkTable();
    private final Callback watching = new Callback();
    private final Settling settling = new Settling();
    private Callback mobile; // the request for mobile data; null = none
    private boolean roaming; // mobile may be roaming

    /** networks is told which networks are present. */
    LinkWatcher(ConnectivityManager manager, NetworkHost networks, Handler handler, Listener listener) {
        this.manager = manager;
        this.networks = networks;
        this.handler = handler;
        this.listener = listener;
    }

    void start() {
        NetworkRequest all =
                new NetworkRequest.Builder()
                        .addCapability(NetworkCapabilities.NET_CAPABILITY_INTERNET)
                        .removeCapability(NetworkCapabilities.NET_CAPABILITY_NOT_VPN)
                        .build();
        manager.registerNetworkCallback(all, watching, handler);
        manager.registerDefaultNetworkCallback(settling, handler);
    }

    void stop() {
        request(false, roaming);
        handler.removeCallbacks(settling);
        manager.unregisterNetworkCallback(settling);
        manager.unregisterNetworkCallback(watching);
    }

    /** Makes the system bring mobile data up beside Wi-Fi, also while roaming if alsoRoaming, or releases it. */
    void request(boolean wanted, boolean alsoRoaming) {
        if (mobile != null && (!wanted || roaming != alsoRoaming)) {
            manager.unregisterNetworkCallback(mobile);
            mobile = null;
        }
        roaming = alsoRoaming;
        if (!wanted || mobile != null) {
            return;
        }
        mobile = new Callback();
        NetworkRequest.Builder cellular =
                new NetworkRequest.Builder()
                        .addTransportType(NetworkCapabilities.TRANSPORT_CELLULAR)
                        .addCapability(NetworkCapabilities.NET_CAPABILITY_INTERNET);
        if (!roaming && Build.VERSION.SDK_INT >= 28) { // Android 8 would not offer the network then
            cellular.addCapability(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        }
        manager.requestNetwork(cellular.build(), mobile, handler);
    }

    /**
     * The system's default network. It is reported only after the system's test has had time to find a login page:
     * until then a network that does not lead to the internet looks like one that the user accepted.
     */
    private final class Settling extends ConnectivityManager.NetworkCallback implements Runnable {
        private Network now;

        @Override
        public void onAvailable(Network network) {
            if (!network.equals(now)) {
                set(network);
                handler.postDelayed(this, TEST_MILLIS);
            }
        }

        @Override
        public void onLost(Network network) {
            if (network.equals(now)) {
                set(null);
            }
        }

        private void set(Network network) {
            now = network;
            handler.removeCallbacks(this);
            table.byDefault(null);
            listener.networks(table.snapshot());
        }

        @Override
        public void run() {
            table.byDefault(now.getNetworkHandle());
            listener.networks(table.snapshot());
        }
    }

    /** One class for both requests: two callbacks report the same about one network. */
    private final class Callback extends ConnectivityManager.NetworkCallback {
        @Override
        public void onAvailable(Network network) {
            networks.add(network);
            table.available(network.getNetworkHandle());
        }

        @Override
        public void onCapabilitiesChanged(Network network, NetworkCapabilities c) {
            int sim = Build.VERSION.SDK_INT >= 30 ? sim(c) : Net.NO_SIM;
            table.capabilities(network.getNetworkHandle(), kind(c), sim, traits(network, c));
            listener.networks(table.snapshot());
        }

        @Override
        public void onBlockedStatusChanged(Network network, boolean blocked) { // Android 10
            table.blocked(network.getNetworkHandle(), blocked);
            listener.networks(table.snapshot());
        }

        @Override
        public void onLinkPropertiesChanged(Network network, LinkProperties p) {
            List<String> addrs = new ArrayList<String>();
            for (LinkAddress a : p.getLinkAddresses()) {
                addrs.add(text(a.getAddress()) + "/" + a.getPrefixLength());
            }
            List<String> dns = new ArrayList<String>();
            for (InetAddress a : p.getDnsServers()) {
                dns.add(text(a));
            }
            boolean named = ours(p.getHttpProxy()) || ours(manager.getDefaultProxy());
            table.properties(network.getNetworkHandle(), p.getInterfaceName(), addrs, dns, nat64(p), named);
            listener.networks(table.snapshot());
        }

        @Override
        public void onLost(Network network) {
            networks.remove(network);
            table.lost(network.getNetworkHandle());
            listener.networks(table.snapshot());
        }
    }

    private Set<Net.Trait> traits(Network network, NetworkCapabilities c) {
        Set<Net.Trait> all = EnumSet.noneOf(Net.Trait.class);
        if (!c.hasCapability(NetworkCapabilities.NET_CAPABILITY_NOT_METERED)) {
            all.add(Net.Trait.METERED);
        }
        if (c.hasCapability(NetworkCapabilities.NET_CAPABILITY_VALIDATED)) {
            all.add(Net.Trait.VALIDATED);
        }
        if (c.hasCapability(NetworkCapabilities.NET_CAPABILITY_CAPTIVE_PORTAL)) {
            all.add(Net.Trait.CAPTIVE);
        }
        if (kind(c) == Net.Kind.CELLULAR && roams(network, c)) {
            all.add(Net.Trait.ROAMING);
        }
        return all;
    }

    @SuppressWarnings("deprecation") // the only way before Android 9
    private boolean roams(Network network, NetworkCapabilities c) {
        if (Build.VERSION.SDK_INT >= 28) {
            return !c.hasCapability(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        }
        android.net.NetworkInfo info = manager.getNetworkInfo(network);
        return info != null && info.isRoaming();
    }

    @TargetApi(30)
    private static int sim(NetworkCapabilities c) {
        NetworkSpecifier s = c.getNetworkSpecifier();
        return s instanceof TelephonyNetworkSpecifier ? ((TelephonyNetworkSpecifier) s).getSubscriptionId() : Net.NO_SIM;
    }

    private static String nat64(LinkProperties p) {
        IpPrefix prefix = Build.VERSION.SDK_INT >= 30 ? p.getNat64Prefix() : null;
        return prefix == null ? "" : text(prefix.getAddress()) + "/" + prefix.getPrefixLength();
    }

    private static boolean ours(ProxyInfo p) {
        return p != null && ProxyService.LISTEN.equals(p.getHost() + ":" + p.getPort());
    }

    /** Returns an address without the scope that Java appends to it. */
    static String text(InetAddress a) {
        String s = a.getHostAddress();
        int scope = s.indexOf('%');
        return scope < 0 ? s : s.substring(0, scope);
    }

    private static Net.Kind kind(NetworkCapabilities c) {
        if (c.hasTransport(NetworkCapabilities.TRANSPORT_VPN)) {
            return Net.Kind.VPN;
        }
        if (c.hasTransport(SATELLITE)) {
            return Net.Kind.SATELLITE;
        }
        if (c.hasTransport(NetworkCapabilities.TRANSPORT_WIFI)) {
            return Net.Kind.WIFI;
        }
        if (c.hasTransport(NetworkCapabilities.TRANSPORT_CELLULAR)) {
            return Net.Kind.CELLULAR;
        }
        return c.hasTransport(NetworkCapabilities.TRANSPORT_ETHERNET) ? Net.Kind.ETHERNET : Net.Kind.OTHER;
    }
}
