package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.Context;
import android.content.DialogInterface;
import android.content.pm.PackageManager;
import android.os.Build;
import io.github.tributary.R;
import io.github.tributary.core.AppAccess;
import io.github.tributary.core.Reach;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** The question of which other apps may use mobile data through the proxy. */
final class AppsChoice {
    private static final AppAccess.Choice[] CHOICES = {AppAccess.Choice.NONE, AppAccess.Choice.ALL, AppAccess.Choice.CHOSEN};

    private AppsChoice() {}

    /** Returns the access that applies now. */
    static AppAccess access(Context context, Settings settings) {
        Set<Integer> uids = new HashSet<Integer>();
        for (String name : settings.chosen()) {
            try {
                uids.add(context.getPackageManager().getPackageUid(name, 0));
            } catch (PackageManager.NameNotFoundException e) {
                continue; // no longer on this phone
            }
        }
        return AppAccess.of(settings.apps(), uids, settings.reach(), Build.VERSION.SDK_INT >= 29);
    }

    /** Returns the name that people see for a choice. */
    static String name(Context context, AppAccess.Choice choice) {
        switch (choice) {
            case ALL:
                return context.getString(R.string.apps_all);
            case CHOSEN:
                return context.getString(R.string.apps_chosen);
            default:
                return context.getString(R.string.apps_none);
        }
    }

    /** Asks. The system tells apps apart only with the VPN: otherwise there is no third choice. */
    static void ask(final Activity screen) {
        final Settings settings = new Settings(screen);
        boolean told = Build.VERSION.SDK_INT >= 29 && settings.reach() == Reach.VPN;
        String[] names = new String[told ? 3 : 2];
        for (int i = 0; i < names.length; i++) {
            names[i] = name(screen, CHOICES[i]);
        }
        int now = Arrays.asList(CHOICES).indexOf(access(screen, settings).choice);
        new AlertDialog.Builder(screen)
                .setTitle(R.string.apps_title)
                .setSingleChoiceItems(
                        names,
                        now,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                dialog.dismiss();
                                choose(screen, settings, CHOICES[which]);
                            }
                        })
                .setNegativeButton(android.R.string.cancel, null)
                .show();
    }

    private static void choose(final Activity screen, final Settings settings, AppAccess.Choice choice) {
        if (choice == AppAccess.Choice.NONE) {
            settings.setApps(choice, settings.chosen());
        } else if (choice == AppAccess.Choice.CHOSEN) {
            askWhich(screen, settings);
        } else {
            new AlertDialog.Builder(screen)
                    .setTitle(R.string.apps_title)
                    .setMessage(R.string.apps_all_question)
                    .setPositiveButton(
                            R.string.apps_all_agree,
                            new DialogInterface.OnClickListener() {
                                @Override
                                public void onClick(DialogInterface dialog, int which) {
                                    settings.setApps(AppAccess.Choice.ALL, settings.chosen());
                                }
                            })
                    .setNegativeButton(android.R.string.cancel, null)
                    .show();
        }
    }

    private static void askWhich(Activity screen, final Settings settings) {
        final Set<String> chosen = new TreeSet<String>(settings.chosen());
        Map<String, String> apps = BypassChoice.apps(screen, Collections.<String>emptySet());
        final String[] packages = apps.values().toArray(new String[0]);
        boolean[] ticked = new boolean[packages.length];
        for (int i = 0; i < packages.length; i++) {
            ticked[i] = chosen.contains(packages[i]);
        }
        new AlertDialog.Builder(screen)
                .setTitle(R.string.apps_which)
                .setMultiChoiceItems(
                        apps.keySet().toArray(new String[0]),
                        ticked,
                        new DialogInterface.OnMultiChoiceClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which, boolean checked) {
                                if (checked) {
                                    chosen.add(packages[which]);
                                } else {
                                    chosen.remove(packages[which]);
                                }
                            }
                        })
                .setPositiveButton(
                        android.R.string.ok,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                settings.setApps(AppAccess.Choice.CHOSEN, chosen);
                            }
                        })
                .setNegativeButton(android.R.string.cancel, null)
                .show();
    }
}
