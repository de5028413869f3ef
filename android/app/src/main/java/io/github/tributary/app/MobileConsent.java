package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.Context;
import android.content.DialogInterface;
import android.content.pm.PackageManager;
import io.github.tributary.R;
import io.github.tributary.core.MobilePolicy;

/** The questions asked before networks that may cost money are used. */
final class MobileConsent implements NetworkRows.Consent {
    private final Activity screen;
    private final Settings settings;
    private final Runnable answered;
    private boolean asked; // by first

    /** answered runs after each question, whatever the answer. */
    MobileConsent(Activity screen, Settings settings, Runnable answered) {
        this.screen = screen;
        this.settings = settings;
        this.answered = answered;
    }

    @Override
    public void mobileData() {
        use(MobilePolicy.Mode.MOBILE_HELPS);
    }

    @Override
    public void batterySaver() {
        settings.setInBatterySaver(true);
        answered.run();
    }

    /** Returns whether the phone has mobile data and the user has not yet said whether it may be used. */
    static boolean due(Context context, Settings settings) {
        return !settings.mobileAnswered() && context.getPackageManager().hasSystemFeature(PackageManager.FEATURE_TELEPHONY);
    }

    /**
     * Asks whether mobile data may be used, now that something could use it, unless the user has already said so. It
     * asks once; without an answer, the next screen asks. Nothing waits for the answer, and nothing is spent before it.
     * Returns false if it does not ask.
     */
    boolean first() {
        if (asked || !due(screen, settings)) {
            return false;
        }
        asked = true;
        use(MobilePolicy.Mode.MOBILE_HELPS);
        return true;
    }

    /** Sets a mode that may cost money, after a question if the user has not yet agreed. */
    void use(final MobilePolicy.Mode mode) {
        if (settings.policy().consent) {
            settings.setMode(mode);
            answered.run();
            return;
        }
        ask(
                R.string.consent_title,
                R.string.consent,
                R.string.agree,
                R.string.refuse,
                new Runnable() {
                    @Override
                    public void run() {
                        settings.setConsent(true);
                        settings.setMode(mode);
                    }
                },
                new Runnable() {
                    @Override
                    public void run() {
                        settings.setMode(MobilePolicy.Mode.WIFI_ONLY);
                    }
                });
    }

    @Override
    public void roaming() {
        ask(
                R.string.roaming_title,
                R.string.roaming_consent,
                R.string.roaming_agree,
                android.R.string.cancel,
                new Runnable() {
                    @Override
                    public void run() {
                        settings.setRoaming(true);
                    }
                },
                new Runnable() {
                    @Override
                    public void run() {}
                });
    }

    private void ask(int title, int question, int agree, int refuse, final Runnable agreed, final Runnable refused) {
        AlertDialog dialog = new AlertDialog.Builder(screen)
                .setTitle(title)
                .setMessage(question)
                .setPositiveButton(
                        agree,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                agreed.run();
                            }
                        })
                .setNegativeButton(
                        refuse,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                refused.run();
                            }
                        })
                .setOnDismissListener(
                        new DialogInterface.OnDismissListener() {
                            @Override
                            public void onDismiss(DialogInterface dialog) {
                                answered.run();
                            }
                        })
                .show();
        // A window that another app draws over the question must not capture the user's tap.
        dialog.getButton(DialogInterface.BUTTON_POSITIVE).setFilterTouchesWhenObscured(true);
    }
}
