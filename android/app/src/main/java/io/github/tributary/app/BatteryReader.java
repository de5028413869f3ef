package io.github.tributary.app;

import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.os.BatteryManager;
import io.github.tributary.core.Battery;
import io.github.tributary.core.BatteryScale;

/** Reads the battery. For one thread. */
final class BatteryReader {
    private final Context context;
    private final BatteryManager manager;
    private final BatteryScale scale = new BatteryScale();

    BatteryReader(Context context) {
        this.context = context.getApplicationContext();
        manager = (BatteryManager) context.getSystemService(Context.BATTERY_SERVICE);
    }

    Battery read() {
        Intent last = context.registerReceiver(null, new IntentFilter(Intent.ACTION_BATTERY_CHANGED)); // the sticky one
        Intent b = last == null ? new Intent() : last;
        int full = b.getIntExtra(BatteryManager.EXTRA_SCALE, 0);
        int level = b.getIntExtra(BatteryManager.EXTRA_LEVEL, -1);
        return scale.read(
                full > 0 ? level * 100 / full : Battery.UNKNOWN,
                b.getIntExtra(BatteryManager.EXTRA_PLUGGED, 0) != 0,
                manager.getLongProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW),
                manager.getLongProperty(BatteryManager.BATTERY_PROPERTY_CHARGE_COUNTER),
                b.getIntExtra(BatteryManager.EXTRA_VOLTAGE, 0),
                b.getIntExtra(BatteryManager.EXTRA_TEMPERATURE, Battery.UNKNOWN));
    }
}
