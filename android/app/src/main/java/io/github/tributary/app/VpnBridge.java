package io.github.tributary.app;

import android.annotation.TargetApi;
import android.app.PendingIntent;
import android.content.Context;
import android.content.Intent;
import android.content.pm.PackageManager;
import android.net.ProxyInfo;
import android.net.VpnService;
import android.os.Handler;
import android.os.ParcelFileDescriptor;
import android.system.OsConstants;
import android.util.Log;
import io.github.tributary.R;
import io.github.tributary.core.Reach;
import java.io.IOException;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * A VPN that carries nothing and names the proxy to apps. Traffic without a route in a VPN uses the underlying
 * networks, as do name lookups, and the system removes the VPN when the process dies. Android 10 and newer.
 */
@TargetApi(29)
public final class VpnBridge extends VpnService {
    private static final String TAG = "tributary";
    private static final byte[] ADDRESS = {10, (byte) 255, (byte) 255, 1}; // unused, but a VPN must have one
    private static final int ADDRESS_BITS = 32;

    /**
     * Apps that break although the VPN carries nothing, since a VPN exists, or because they look for devices nearby:
     * Android Auto, Chromecast, cameras, loudspeakers, printers, and the messages of some providers.
     */
    static final Set<String> AROUND =
            Collections.unmodifiableSet(
                    new HashSet<String>(
                            Arrays.asList(
                                    "com.google.android.projection.gearhead",
                                    "com.google.android.apps.chromecast.app",
                                    "com.google.android.apps.messaging",
                                    "com.samsung.android.messaging",
                                    "com.gopro.smarty",
                                    "com.sonos.acr",
                                    "com.sonos.acr2",
                                    "com.hp.android.printservice",
                                    "com.hp.printercontrol",
                                    "com.android.bips",
                                    "com.android.printspooler")));

    /** Machines nearby, which are reached without the proxy. */
    private static final List<String> NEARBY = nearby();

    private static VpnBridge running; // owned by the main thread

    private ParcelFileDescriptor tunnel;

    static void open(Context context) {
        context.startService(new Intent(context, VpnBridge.class));
    }

    private static List<String> nearby() {
        List<String> all = new ArrayList<String>(Arrays.asList("localhost", "*.local", "127.*", "10.*", "192.168.*", "169.254.*"));
        for (int i = 16; i < 32; i++) {
            all.add("172." + i + ".*");
        }
        return all;
    }

    /** Applies the choice of apps that bypass it, if it is open. */
    static void reopen() {
        if (running != null && running.tunnel != null) {
            ParcelFileDescriptor old = running.tunnel;
            running.tunnel = null;
            running.establish(); // the system replaces the old one with it
            shut(old);
        }
    }

    static void close(Context context) {
        if (running != null) {
            running.end();
        }
        context.stopService(new Intent(context, VpnBridge.class));
    }

    @Override
    public int onStartCommand(Intent intent, int flags, int id) {
        running = this;
        if (tunnel == null) {
            establish();
        }
        return START_NOT_STICKY;
    }

    private void establish() {
        try {
            tunnel = configure(new Builder()).establish();
        } catch (IOException | PackageManager.NameNotFoundException | RuntimeException e) {
            Log.e(TAG, "VPN", e);
        }
        if (tunnel == null) { // the user's consent is gone, or another VPN is always on
            new Settings(this).setReach(Reach.BY_HAND);
            stopSelf();
        }
    }

    /**
     * Sets which apps it is for: all but those that the user lets bypass it, and this one, whose sockets are bound to
     * networks. Other apps may bind theirs, too: to a loudspeaker's Wi-Fi, for example.
     */
    Builder configure(Builder b) throws IOException, PackageManager.NameNotFoundException {
        int colon = ProxyService.LISTEN.lastIndexOf(':');
        String host = ProxyService.LISTEN.substring(0, colon);
        int port = Integer.parseInt(ProxyService.LISTEN.substring(colon + 1));
        for (String name : new Settings(this).around()) {
            try {
                b.addDisallowedApplication(name);
            } catch (PackageManager.NameNotFoundException e) {
                Log.i(TAG, name + " is not on this phone");
            }
        }
        return b.setSession(getString(R.string.app_name))
                .setConfigureIntent(
                        PendingIntent.getActivity(this, 0, new Intent(this, MainActivity.class), PendingIntent.FLAG_IMMUTABLE))
                .addAddress(InetAddress.getByAddress(ADDRESS), ADDRESS_BITS)
                .allowFamily(OsConstants.AF_INET)
                .allowFamily(OsConstants.AF_INET6) // otherwise IPv6 would be blocked
                .allowBypass()
                .addDisallowedApplication(getPackageName())
                .setMetered(false) // like the underlying networks
                .setHttpProxy(ProxyInfo.buildDirectProxy(host, port, NEARBY));
    }

    /** Called when another VPN takes its place, or the user ended it in the system's settings. */
    @Override
    public void onRevoke() { // on one of the system's threads
        new Handler(getMainLooper())
                .post(
                        new Runnable() {
                            @Override
                            public void run() {
                                new Settings(VpnBridge.this).setReach(Reach.BY_HAND);
                                end();
                                stopSelf();
                            }
                        });
    }

    @Override
    public void onDestroy() {
        end();
        if (running == this) {
            running = null;
        }
        super.onDestroy();
    }

    /** Ends it. The system keeps the service while this is open. */
    private void end() {
        if (tunnel != null) {
            shut(tunnel);
            tunnel = null;
        }
    }

    private static void shut(ParcelFileDescriptor tunnel) {
        try {
            tunnel.close();
        } catch (IOException e) {
            Log.w(TAG, "VPN", e);
        }
    }
}
