package io.github.tributary.app;

import android.net.ConnectivityManager;
import android.net.IpPrefix;
import android.net.LinkAddress;
import android.net.LinkProperties;
import android.net.Network;
import android.net.NetworkCapabilities;
import android.net.NetworkRequest;
import android.net.ProxyInfo;
import android.os.Build;
import android.os.Handler;
import io.github.tributary.core.Net;
import io.github.tributary.core.NetworkTable;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;

/** Watches the networks, and asks for mobile data. Everything happens on one handler's thread, its methods included. */
final class LinkWatcher {
    /** Hears of the networks there are now. */
    interface Listener {
        void networks(List<Net> all);
    }

    private final ConnectivityManager manager;
    private final NetworkHost networks;
    private final Handler handler;
    private final Listener listener;
    private final NetworkTable table = new NetworkTable();
    private final Callback watching = new Callback();
    private Callback mobile; // the request for mobile data; null = none

    /** Networks are told which there are. */
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
    }

    void stop() {
        request(false);
        manager.unregisterNetworkCallback(watching);
    }

    /** Has the system bring mobile data up beside Wi-Fi, or lets it go. */
    void request(boolean wanted) {
        if (wanted == (mobile != null)) {
            return;
        }
        if (!wanted) {
            manager.unregisterNetworkCallback(mobile);
            mobile = null;
            return;
        }
        mobile = new Callback();
        NetworkRequest cellular =
                new NetworkRequest.Builder()
                        .addTransportType(NetworkCapabilities.TRANSPORT_CELLULAR)
                        .addCapability(NetworkCapabilities.NET_CAPABILITY_INTERNET)
                        .build();
        manager.requestNetwork(cellular, mobile, handler);
    }

    /** The same for both requests: what two callbacks tell of one network is the same. */
    private final class Callback extends ConnectivityManager.NetworkCallback {
        @Override
        public void onAvailable(Network network) {
            networks.add(network);
            table.available(network.getNetworkHandle());
        }

        @Override
        public void onCapabilitiesChanged(Network network, NetworkCapabilities c) {
            table.capabilities(
                    network.getNetworkHandle(),
                    kind(c),
                    !c.hasCapability(NetworkCapabilities.NET_CAPABILITY_NOT_METERED),
                    c.hasCapability(NetworkCapabilities.NET_CAPABILITY_VALIDATED),
                    c.hasCapability(NetworkCapabilities.NET_CAPABILITY_CAPTIVE_PORTAL));
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

    private static String nat64(LinkProperties p) {
        IpPrefix prefix = Build.VERSION.SDK_INT >= 30 ? p.getNat64Prefix() : null;
        return prefix == null ? "" : text(prefix.getAddress()) + "/" + prefix.getPrefixLength();
    }

    private static boolean ours(ProxyInfo p) {
        return p != null && ProxyService.LISTEN.equals(p.getHost() + ":" + p.getPort());
    }

    /** An address without the scope that Java writes behind it. */
    static String text(InetAddress a) {
        String s = a.getHostAddress();
        int scope = s.indexOf('%');
        return scope < 0 ? s : s.substring(0, scope);
    }

    private static Net.Kind kind(NetworkCapabilities c) {
        if (c.hasTransport(NetworkCapabilities.TRANSPORT_VPN)) {
            return Net.Kind.VPN;
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
