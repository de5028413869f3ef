package io.github.tributary.app;

import android.Manifest;
import android.content.ContentResolver;
import android.content.Context;
import android.content.pm.PackageManager;
import io.github.tributary.core.GlobalProxy;

/**
 * The system's setting of a proxy for all networks, which Android hides. It is written with a permission that only adb gives:
 * adb shell pm grant io.github.tributary android.permission.WRITE_SECURE_SETTINGS
 */
final class ProxySetting implements GlobalProxy.Setting {
    private static final String NAME = "http_proxy";

    private final ContentResolver resolver;

    private ProxySetting(Context context) {
        resolver = context.getContentResolver();
    }

    static GlobalProxy of(Context context) {
        return new GlobalProxy(ProxyService.LISTEN, new ProxySetting(context), Settings.replacedProxy(context));
    }

    /** Returns whether the user has granted the permission. */
    static boolean permitted(Context context) {
        return context.checkSelfPermission(Manifest.permission.WRITE_SECURE_SETTINGS) == PackageManager.PERMISSION_GRANTED;
    }

    @Override
    public String read() {
        return android.provider.Settings.Global.getString(resolver, NAME);
    }

    @Override
    public void write(String value) {
        android.provider.Settings.Global.putString(resolver, NAME, value);
    }
}
