package io.github.tributary.app;

import android.content.Context;
import android.net.wifi.WifiManager;
import android.os.Build;
import android.os.Handler;
import android.os.PowerManager;

/**
 * Keeps the processor awake, and Wi-Fi out of its power save mode, while the screen is off: otherwise the processor
 * sleeps, timers included, and Wi-Fi fetches packets only a few times a second. For the main thread.
 */
final class Awake {
    /** How long to stay awake after the last report of a transfer. Longer than a download waits before it retries. */
    static final long MILLIS = 35_000;

    private final Handler main;
    private final PowerManager.WakeLock processor;
    private final WifiManager.WifiLock wifi; // null = Android has no such lock for apps in the background
    private final Runnable end =
            new Runnable() {
                @Override
                public void run() {
                    release();
                }
            };

    @SuppressWarnings("deprecation") // Android 14 and newer replace it with another that works only in the foreground
    Awake(Context context, Handler main) {
        this.main = main;
        processor = ((PowerManager) context.getSystemService(Context.POWER_SERVICE)).newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, "tributary:transfers");
        processor.setReferenceCounted(false);
        if (Build.VERSION.SDK_INT >= 34) {
            wifi = null;
            return;
        }
        WifiManager manager = (WifiManager) context.getApplicationContext().getSystemService(Context.WIFI_SERVICE);
        wifi = manager.createWifiLock(WifiManager.WIFI_MODE_FULL_HIGH_PERF, "tributary:transfers");
        wifi.setReferenceCounted(false);
    }

    /** Keeps both awake from now on, for a while. */
    void hold() {
        processor.acquire(MILLIS); // ends by itself, whatever happens to the process
        if (wifi != null && !wifi.isHeld()) {
            wifi.acquire();
        }
        main.removeCallbacks(end);
        main.postDelayed(end, MILLIS);
    }

    void release() {
        main.removeCallbacks(end);
        processor.release();
        if (wifi != null && wifi.isHeld()) {
            wifi.release();
        }
    }
}
