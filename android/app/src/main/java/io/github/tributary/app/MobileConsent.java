package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.Context;
import android.content.DialogInterface;
import android.content.pm.PackageManager;
import io.github.tributary.R;
import io.github.tributary.core.MobilePolicy;

/** The questions that come before networks are used which may cost money. */
final class MobileConsent implements NetworkRows.Consent {
    private final Activity screen;
    private final Settings settings;
    private final Runnable answered;
    private boolean asked; // by first

    /** Answered runs after each question, whatever the answer. */
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

    /** Whether there is mobile data of which the user has not said if it may be used. */
    static boolean due(Context context, Settings settings) {
        return !settings.mobileAnswered() && context.getPackageManager().hasSystemFeature(PackageManager.FEATURE_TELEPHONY);
    }

    /**
     * Asks whether mobile data may be used, now that something could use it, if the user has not said so yet. Once: who gives no answer is
     * asked by the next screen. Nothing waits for the answer; until it comes, nothing is spent. False = it is not asked.
     */
    boolean first() {
        if (asked || !due(screen, settings)) {
            return false;
        }
        asked = true;
        use(MobilePolicy.Mode.MOBILE_HELPS);
        return true;
    }

    /** Sets a mode that may cost money, after a question if the user has not agreed yet. */
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
        // A window that another app lays over the question must not borrow the user's finger.
        dialog.getButton(DialogInterface.BUTTON_POSITIVE).setFilterTouchesWhenObscured(true);
    }
}
