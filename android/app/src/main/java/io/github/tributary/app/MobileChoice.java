package io.github.tributary.app;

import android.app.Activity;
import android.view.KeyEvent;
import android.view.View;
import android.widget.CheckBox;
import android.widget.EditText;
import android.widget.RadioGroup;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.Limits;
import io.github.tributary.core.MobilePolicy;

/** The part of the screen about mobile data and other networks that may cost money: the user is asked before they are used. */
final class MobileChoice {
    private static final long MB = 1_000_000;

    private final Activity screen;
    private final Settings settings;
    private final MobileConsent consent;

    MobileChoice(Activity screen, Settings settings) {
        this.screen = screen;
        this.settings = settings;
        consent =
                new MobileConsent(
                        screen,
                        settings,
                        new Runnable() {
                            @Override
                            public void run() {
                                show();
                            }
                        });
    }

    /** Returns the questions, for other parts of the screen. */
    MobileConsent consent() {
        return consent;
    }

    void bind() {
        Limits l = settings.policy().limits;
        bind(R.id.monthly, megabytes(l.monthlyBytes));
        bind(R.id.daily, megabytes(l.dailyBytes));
        bind(R.id.first_day, String.valueOf(l.firstDay));
        show();
        bindBatterySaver();
        ((RadioGroup) screen.findViewById(R.id.mode))
                .setOnCheckedChangeListener(
                        new RadioGroup.OnCheckedChangeListener() {
                            @Override
                            public void onCheckedChanged(RadioGroup group, int id) {
                                choose(id);
                            }
                        });
        screen.findViewById(R.id.roaming)
                .setOnClickListener( // not on a change of state: the system restores that
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                chooseRoaming(((CheckBox) v).isChecked());
                            }
                        });
    }

    private void bindBatterySaver() {
        screen.findViewById(R.id.in_battery_saver)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                settings.setInBatterySaver(((CheckBox) v).isChecked());
                            }
                        });
    }

    private static String megabytes(long bytes) {
        return bytes == 0 ? "" : String.valueOf(bytes / MB);
    }

    /** Applies a number when its input is complete. */
    private void bind(int id, String text) {
        EditText number = (EditText) screen.findViewById(id);
        number.setText(text);
        number.setOnFocusChangeListener(
                new View.OnFocusChangeListener() {
                    @Override
                    public void onFocusChange(View v, boolean focus) {
                        if (!focus) {
                            save();
                        }
                    }
                });
        number.setOnEditorActionListener(
                new TextView.OnEditorActionListener() {
                    @Override
                    public boolean onEditorAction(TextView v, int action, KeyEvent key) {
                        save();
                        return false; // the keyboard closes as usual
                    }
                });
    }

    private void choose(int id) {
        if (id == R.id.wifi_only) {
            settings.setMode(MobilePolicy.Mode.WIFI_ONLY);
        } else {
            consent.use(id == R.id.helps ? MobilePolicy.Mode.MOBILE_HELPS : MobilePolicy.Mode.MOBILE_BACKUP);
        }
    }

    private void chooseRoaming(boolean allowed) {
        if (allowed) {
            consent.roaming();
        } else {
            settings.setRoaming(false);
        }
    }

    void show() {
        MobilePolicy policy = settings.policy();
        int id = R.id.wifi_only;
        if (policy.mobileAllowed()) {
            id = policy.mode == MobilePolicy.Mode.MOBILE_HELPS ? R.id.helps : R.id.backup;
        }
        RadioGroup group = (RadioGroup) screen.findViewById(R.id.mode);
        if (group.getCheckedRadioButtonId() != id) {
            group.check(id);
        }
        ((CheckBox) screen.findViewById(R.id.roaming)).setChecked(policy.roaming);
        ((CheckBox) screen.findViewById(R.id.in_battery_saver)).setChecked(settings.inBatterySaver());
    }

    /** Applies the limits; not at every key press, since half a number is another limit. */
    void save() {
        Limits old = settings.policy().limits;
        long day = number(R.id.first_day);
        int first = day >= 1 && day <= 31 ? (int) day : old.firstDay;
        Limits now = new Limits(number(R.id.monthly) * MB, number(R.id.daily) * MB, first);
        if (now.monthlyBytes != old.monthlyBytes || now.dailyBytes != old.dailyBytes || now.firstDay != old.firstDay) {
            settings.setLimits(now);
        }
        ((EditText) screen.findViewById(R.id.first_day)).setText(String.valueOf(first));
    }

    private long number(int id) {
        String text = ((EditText) screen.findViewById(id)).getText().toString();
        return text.isEmpty() ? 0 : Long.parseLong(text);
    }
}
