package io.github.tributary.app;

import android.Manifest;
import android.app.Activity;
import android.content.Context;
import android.content.pm.PackageManager;
import android.os.Build;

/** The permission to put files into the phone's Downloads before Android 10. Later versions let every app do so. */
final class StoragePermission {
    private static final String NAME = Manifest.permission.WRITE_EXTERNAL_STORAGE;

    /** The number by which the screen recognizes the answer. */
    static final int REQUEST = 1;

    private StoragePermission() {}

    static boolean given(Context context) {
        return context.checkSelfPermission(NAME) == PackageManager.PERMISSION_GRANTED;
    }

    /**
     * Asks for it, unless the user refused it before. Returns true if the screen's onRequestPermissionsResult will
     * receive the answer, as REQUEST.
     */
    static boolean ask(Activity screen) {
        if (Build.VERSION.SDK_INT >= 29 || given(screen) || screen.shouldShowRequestPermissionRationale(NAME)) {
            return false;
        }
        screen.requestPermissions(new String[] {NAME}, REQUEST);
        return true;
    }
}
