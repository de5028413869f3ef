package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import io.github.tributary.R;
import io.github.tributary.core.MobilePolicy;

/** The questions that come before networks are used which may cost money. */
final class MobileConsent implements NetworkRows.Consent {
    private final Activity screen;
    private final Settings settings;
    private final Runnable answered;

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
                });
    }

    private void ask(int title, int question, int agree, int refuse, final Runnable agreed) {
        new AlertDialog.Builder(screen)
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
                .setNegativeButton(refuse, null)
                .setOnDismissListener(
                        new DialogInterface.OnDismissListener() {
                            @Override
                            public void onDismiss(DialogInterface dialog) {
                                answered.run();
                            }
                        })
                .show();
    }
}
