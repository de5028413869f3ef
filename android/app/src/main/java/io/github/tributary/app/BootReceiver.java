package io.github.tributary.app;

import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;

/** Starts the proxy with the phone, if the user wants that. */
public final class BootReceiver extends BroadcastReceiver {
    @Override
    public void onReceive(Context context, Intent intent) {
        Settings settings = new Settings(context);
        if (Intent.ACTION_BOOT_COMPLETED.equals(intent.getAction()) && settings.onBoot()) {
            ProxyService.start(context);
        }
    }
}
