package io.github.tributary.app;

import android.Manifest;
import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import android.content.pm.PackageManager;
import android.os.Build;
import android.os.Bundle;
import android.os.Handler;
import android.os.Looper;
import android.text.Editable;
import android.text.TextWatcher;
import android.text.format.Formatter;
import android.view.View;
import android.widget.Button;
import android.widget.CheckBox;
import android.widget.CompoundButton;
import android.widget.EditText;
import android.widget.RadioGroup;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.Status;

/** The one screen: start and stop, what runs, and what mobile data may be used for. */
public final class MainActivity extends Activity {
    private static final long REFRESH_MILLIS = 1_000;
    private static final long MB = 1_000_000;

    private final Handler main = new Handler(Looper.getMainLooper());
    private Settings settings;

    private final Runnable refresh =
            new Runnable() {
                @Override
                public void run() {
                    show();
                    main.postDelayed(this, REFRESH_MILLIS);
                }
            };

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        setContentView(R.layout.main);
        settings = new Settings(this);
        findViewById(R.id.toggle)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                toggle();
                            }
                        });
        CheckBox boot = (CheckBox) findViewById(R.id.on_boot);
        boot.setChecked(settings.onBoot());
        boot.setOnCheckedChangeListener(
                new CompoundButton.OnCheckedChangeListener() {
                    @Override
                    public void onCheckedChanged(CompoundButton button, boolean checked) {
                        settings.setOnBoot(checked);
                    }
                });
        EditText monthly = (EditText) findViewById(R.id.monthly);
        long bytes = settings.policy().monthlyBytes;
        monthly.setText(bytes == 0 ? "" : String.valueOf(bytes / MB));
        monthly.addTextChangedListener(new MonthlyWatcher());
        showMode();
        ((RadioGroup) findViewById(R.id.mode))
                .setOnCheckedChangeListener(
                        new RadioGroup.OnCheckedChangeListener() {
                            @Override
                            public void onCheckedChanged(RadioGroup group, int id) {
                                choose(id);
                            }
                        });
    }

    @Override
    protected void onResume() {
        super.onResume();
        refresh.run();
    }

    @Override
    protected void onPause() {
        main.removeCallbacks(refresh);
        super.onPause();
    }

    private void toggle() {
        if (settings.run()) {
            ProxyService.stop(this);
        } else {
            if (Build.VERSION.SDK_INT >= 33
                    && checkSelfPermission(Manifest.permission.POST_NOTIFICATIONS) != PackageManager.PERMISSION_GRANTED) {
                requestPermissions(new String[] {Manifest.permission.POST_NOTIFICATIONS}, 0); // it runs without, too
            }
            ProxyService.start(this);
        }
        show();
    }

    /** Takes on a choice about mobile data; what may cost money is asked about first. */
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
        new AlertDialog.Builder(this)
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
                                showMode();
                            }
                        })
                .show();
    }

    private void showMode() {
        MobilePolicy policy = settings.policy();
        int id = R.id.wifi_only;
        if (policy.mobileAllowed()) {
            id = policy.mode == MobilePolicy.Mode.MOBILE_HELPS ? R.id.helps : R.id.backup;
        }
        RadioGroup group = (RadioGroup) findViewById(R.id.mode);
        if (group.getCheckedRadioButtonId() != id) {
            group.check(id);
        }
    }

    private void show() {
        boolean run = settings.run();
        ((Button) findViewById(R.id.toggle)).setText(run ? R.string.stop : R.string.start);
        String trouble = ProxyService.trouble();
        String state = getString(run ? R.string.running : R.string.stopped);
        set(R.id.state, run && !trouble.isEmpty() ? trouble : state);
        Status status = ProxyService.status();
        StringBuilder b = new StringBuilder();
        if (run && status != null) {
            for (Status.Link l : status.links) {
                b.append(b.length() == 0 ? "" : "\n");
                b.append(
                        l.reason.isEmpty()
                                ? getString(R.string.link_row, l.name, l.state, Formatter.formatFileSize(this, l.bytes))
                                : getString(R.string.link_reason, l.name, l.state, l.reason));
            }
        }
        set(R.id.links, b.length() == 0 ? getString(R.string.no_links) : b.toString());
    }

    /** Sets a text if it is another: the screen reader says each one. */
    private void set(int id, String text) {
        TextView v = (TextView) findViewById(id);
        if (!text.contentEquals(v.getText())) {
            v.setText(text);
        }
    }

    private final class MonthlyWatcher implements TextWatcher {
        @Override
        public void afterTextChanged(Editable text) {
            settings.setMonthlyBytes(text.length() == 0 ? 0 : Long.parseLong(text.toString()) * MB);
        }

        @Override
        public void beforeTextChanged(CharSequence s, int start, int count, int after) {}

        @Override
        public void onTextChanged(CharSequence s, int start, int before, int count) {}
    }
}
