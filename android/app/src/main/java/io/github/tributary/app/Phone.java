package io.github.tributary.app;

import android.content.Context;
import android.content.pm.PackageManager;
import android.provider.Settings;
import android.telephony.TelephonyManager;
import io.github.tributary.core.MobileRow;

/** What the phone reports about mobile data, apart from its networks. */
final class Phone {
    private Phone() {}

    static MobileRow.Phone now(Context c) {
        TelephonyManager manager = (TelephonyManager) c.getSystemService(Context.TELEPHONY_SERVICE);
        boolean modem = c.getPackageManager().hasSystemFeature(PackageManager.FEATURE_TELEPHONY);
        boolean airplane = Settings.Global.getInt(c.getContentResolver(), Settings.Global.AIRPLANE_MODE_ON, 0) != 0;
        return new MobileRow.Phone(modem, manager.getSimState() == TelephonyManager.SIM_STATE_READY, airplane, data(manager));
    }

    private static boolean data(TelephonyManager manager) {
        try {
            return manager.isDataEnabled();
        } catch (SecurityException | UnsupportedOperationException e) { // restricted, or no modem: it may be on
            return true;
        }
    }
}
