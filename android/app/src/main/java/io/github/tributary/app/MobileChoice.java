package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import android.view.KeyEvent;
import android.view.View;
import android.widget.EditText;
import android.widget.RadioGroup;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.MobilePolicy;

/** The part of the screen about mobile data: what may cost money is asked about first. */
final class MobileChoice {
    private static final long MB = 1_000_000;

    private final Activity screen;
    private final Settings settings;

    MobileChoice(Activity screen, Settings settings) {
        this.screen = screen;
        this.settings = settings;
    }

    void bind() {
        EditText monthly = (EditText) screen.findViewById(R.id.monthly);
        long bytes = settings.policy().monthlyBytes;
        monthly.setText(bytes == 0 ? "" : String.valueOf(bytes / MB));
        monthly.setOnFocusChangeListener(
                new View.OnFocusChangeListener() {
                    @Override
                    public void onFocusChange(View v, boolean focus) {
                        if (!focus) {
                            save();
                        }
                    }
                });
        monthly.setOnEditorActionListener(
                new TextView.OnEditorActionListener() {
                    @Override
                    public boolean onEditorAction(TextView v, int action, KeyEvent key) {
                        save();
                        return false; // the keyboard goes, as always
                    }
                });
        show();
        ((RadioGroup) screen.findViewById(R.id.mode))
                .setOnCheckedChangeListener(
                        new RadioGroup.OnCheckedChangeListener() {
                            @Override
                            public void onCheckedChanged(RadioGroup group, int id) {
                                choose(id);
                            }
                        });
    }

    private void choose(int id) {
        if (id == R.id.wifi_only) {
            settings.setMode(MobilePolicy.Mode.WIFI_ONLY);
            return;
        }
        final MobilePolicy.Mode mode = id == R.id.helps ? MobilePolicy.Mode.MOBILE_HELPS : MobilePolicy.Mode.MOBILE_BACKUP;
        if (settings.policy().consent) {
            settings.setMode(mode);
            return;
        }
        new AlertDialog.Builder(screen)
                .setTitle(R.string.consent_title)
                .setMessage(R.string.consent)
                .setPositiveButton(
                        R.string.agree,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                settings.setConsent(true);
                                settings.setMode(mode);
                            }
                        })
                .setNegativeButton(R.string.refuse, null)
                .setOnDismissListener(
                        new DialogInterface.OnDismissListener() {
                            @Override
                            public void onDismiss(DialogInterface dialog) {
                                show();
                            }
                        })
                .show();
    }

    private void show() {
        MobilePolicy policy = settings.policy();
        int id = R.id.wifi_only;
        if (policy.mobileAllowed()) {
            id = policy.mode == MobilePolicy.Mode.MOBILE_HELPS ? R.id.helps : R.id.backup;
        }
        RadioGroup group = (RadioGroup) screen.findViewById(R.id.mode);
        if (group.getCheckedRadioButtonId() != id) {
            group.check(id);
        }
    }

    /** Takes the limit on: not at every key, since half a number is another limit. */
    void save() {
        String text = ((EditText) screen.findViewById(R.id.monthly)).getText().toString();
        long bytes = text.isEmpty() ? 0 : Long.parseLong(text) * MB;
        if (bytes != settings.policy().monthlyBytes) {
            settings.setMonthlyBytes(bytes);
        }
    }
}
