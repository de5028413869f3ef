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

/**
 * A VPN that carries nothing and names the proxy to apps. What has no route in a VPN goes over the networks beneath it, names
 * are asked for there, too, and when the process dies the system takes it away. Android 10 and newer.
 */
@TargetApi(29)
public final class VpnBridge extends VpnService {
    private static final String TAG = "tributary";
    private static final byte[] ADDRESS = {10, (byte) 255, (byte) 255, 1}; // nobody is there: a VPN must have one
    private static final int ADDRESS_BITS = 32;

    private static VpnBridge running; // of the main thread

    private ParcelFileDescriptor tunnel;

    static void open(Context context) {
        context.startService(new Intent(context, VpnBridge.class));
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
        return START_NOT_STICKY;
    }

    /** Whom it is for: all apps but this one, whose sockets are bound to networks. */
    Builder configure(Builder b) throws IOException, PackageManager.NameNotFoundException {
        int colon = ProxyService.LISTEN.lastIndexOf(':');
        String host = ProxyService.LISTEN.substring(0, colon);
        int port = Integer.parseInt(ProxyService.LISTEN.substring(colon + 1));
        return b.setSession(getString(R.string.app_name))
                .setConfigureIntent(
                        PendingIntent.getActivity(this, 0, new Intent(this, MainActivity.class), PendingIntent.FLAG_IMMUTABLE))
                .addAddress(InetAddress.getByAddress(ADDRESS), ADDRESS_BITS)
                .allowFamily(OsConstants.AF_INET)
                .allowFamily(OsConstants.AF_INET6) // or there would be none
                .addDisallowedApplication(getPackageName())
                .setMetered(false) // as what is beneath it
                .setHttpProxy(ProxyInfo.buildDirectProxy(host, port));
    }

    /** Another VPN takes its place, or the user has ended it in the system's settings. */
    @Override
    public void onRevoke() { // on a thread of the system's
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

    /** The system keeps the service as long as this is open. */
    private void end() {
        if (tunnel == null) {
            return;
        }
        try {
            tunnel.close();
        } catch (IOException e) {
            Log.w(TAG, "VPN", e);
        }
        tunnel = null;
    }
}
