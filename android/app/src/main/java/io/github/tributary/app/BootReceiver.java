package io.github.tributary.app;

import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;

/**
 * Starts the proxy with the phone, if the user wants that, and again after an update of the app, which ended it.
 * {@link App} undoes what an earlier process left behind, whatever the user wants.
 */
public final class BootReceiver extends BroadcastReceiver {
    @Override
    public void onReceive(Context context, Intent intent) {
        Settings settings = new Settings(context);
        if (Intent.ACTION_BOOT_COMPLETED.equals(intent.getAction())) {
            if (settings.onBoot()) {
                ProxyService.start(context);
            } else {
                settings.setRun(false);
            }
        } else if (Intent.ACTION_MY_PACKAGE_REPLACED.equals(intent.getAction()) && settings.run()) {
            ProxyService.start(context);
        }
    }
}
