package io.github.tributary.app;

import android.annotation.TargetApi;
import android.app.ActivityManager;
import android.app.ApplicationExitInfo;
import android.content.Context;
import android.content.pm.PackageManager;
import android.os.Build;
import android.provider.Settings.Global;
import io.github.tributary.R;
import java.util.List;

/** What ended the process before this one, if it should have kept running. */
final class LastEnd {
    private LastEnd() {}

    /** Notes that the proxy runs in this process. */
    static void began(Context context) {
        new Settings(context).setBegan(boots(context), System.currentTimeMillis());
    }

    /**
     * Returns a line about a process that was killed while the proxy ran; "" = none was. Call it when the process
     * starts.
     */
    static String line(Context context) {
        Settings settings = new Settings(context);
        if (!settings.run() || settings.beganBoot() != boots(context) || updated(context, settings.beganMillis())) {
            return ""; // it was stopped, the phone was restarted, or the app was replaced
        }
        int reason = Build.VERSION.SDK_INT >= 30 ? reason(context, settings.beganMillis()) : R.string.end_unknown;
        return context.getString(R.string.ended, context.getString(reason));
    }

    private static int boots(Context context) {
        return Global.getInt(context.getContentResolver(), Global.BOOT_COUNT, 0);
    }

    private static boolean updated(Context context, long began) {
        try {
            return context.getPackageManager().getPackageInfo(context.getPackageName(), 0).lastUpdateTime > began;
        } catch (PackageManager.NameNotFoundException e) { // cannot happen: it is this app
            return false;
        }
    }

    @TargetApi(30)
    private static int reason(Context context, long began) {
        ActivityManager manager = (ActivityManager) context.getSystemService(Context.ACTIVITY_SERVICE);
        List<ApplicationExitInfo> last = manager.getHistoricalProcessExitReasons(null, 0, 1);
        if (last.isEmpty() || last.get(0).getTimestamp() < began) {
            return R.string.end_unknown;
        }
        switch (last.get(0).getReason()) {
            case ApplicationExitInfo.REASON_LOW_MEMORY:
                return R.string.end_memory;
            case ApplicationExitInfo.REASON_EXCESSIVE_RESOURCE_USAGE:
                return R.string.end_battery;
            case ApplicationExitInfo.REASON_USER_REQUESTED:
            case ApplicationExitInfo.REASON_USER_STOPPED:
                return R.string.end_user;
            case ApplicationExitInfo.REASON_ANR:
            case ApplicationExitInfo.REASON_CRASH:
            case ApplicationExitInfo.REASON_CRASH_NATIVE:
            case ApplicationExitInfo.REASON_INITIALIZATION_FAILURE:
                return R.string.end_crash;
            default:
                return R.string.end_unknown;
        }
    }
}
