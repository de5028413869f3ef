package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import android.content.Intent;
import android.content.pm.PackageManager;
import android.content.pm.ResolveInfo;
import android.os.Build;
import io.github.tributary.R;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The question of which apps bypass the VPN. */
final class BypassChoice {
    private BypassChoice() {}

    static void ask(final Activity screen) {
        final Settings settings = new Settings(screen);
        final Set<String> around = new TreeSet<String>(settings.around());
        Map<String, String> apps = apps(screen, VpnBridge.AROUND);
        final String[] packages = apps.values().toArray(new String[0]);
        boolean[] chosen = new boolean[packages.length];
        for (int i = 0; i < packages.length; i++) {
            chosen[i] = around.contains(packages[i]);
        }
        new AlertDialog.Builder(screen)
                .setTitle(R.string.around)
                .setMultiChoiceItems(
                        apps.keySet().toArray(new String[0]),
                        chosen,
                        new DialogInterface.OnMultiChoiceClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which, boolean checked) {
                                if (checked) {
                                    around.add(packages[which]);
                                } else {
                                    around.remove(packages[which]);
                                }
                            }
                        })
                .setPositiveButton(
                        android.R.string.ok,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                settings.setAround(around);
                                if (Build.VERSION.SDK_INT >= 29) {
                                    VpnBridge.reopen();
                                }
                            }
                        })
                .setNegativeButton(android.R.string.cancel, null)
                .show();
    }

    /**
     * Returns the packages of the apps that have a screen, and others if they are on this phone, keyed by the names
     * that people see.
     */
    static Map<String, String> apps(Activity screen, Set<String> others) {
        PackageManager manager = screen.getPackageManager();
        Map<String, String> apps = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
        Intent launcher = new Intent(Intent.ACTION_MAIN).addCategory(Intent.CATEGORY_LAUNCHER);
        for (ResolveInfo app : manager.queryIntentActivities(launcher, 0)) {
            put(apps, app.loadLabel(manager).toString(), app.activityInfo.packageName);
        }
        for (String name : others) {
            try {
                if (!apps.containsValue(name)) {
                    put(apps, manager.getApplicationInfo(name, 0).loadLabel(manager).toString(), name);
                }
            } catch (PackageManager.NameNotFoundException e) {
                continue; // not on this phone
            }
        }
        apps.values().remove(screen.getPackageName()); // it always bypasses the VPN
        return apps;
    }

    private static void put(Map<String, String> apps, String label, String name) {
        String other = apps.get(label);
        apps.put(other == null || other.equals(name) ? label : label + " (" + name + ")", name);
    }
}
