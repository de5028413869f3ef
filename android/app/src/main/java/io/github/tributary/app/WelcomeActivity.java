package io.github.tributary.app;

import android.Manifest;
import android.app.Activity;
import android.content.pm.PackageManager;
import android.os.Build;
import android.os.Bundle;
import android.os.Handler;
import android.os.Looper;
import android.text.format.Formatter;
import android.view.View;
import android.view.ViewGroup;
import android.widget.Button;
import android.widget.EditText;
import android.widget.ProgressBar;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.SharedText;

/** The first run: the choice about mobile data, and a test download that shows what it brings. */
public final class WelcomeActivity extends Activity {
    private static final long REFRESH_MILLIS = 500;

    private final Handler main = new Handler(Looper.getMainLooper());
    private Settings settings;
    private MobileConsent consent;
    private NetworkRows networks;
    private TestRun test;

    private final Runnable refresh =
            new Runnable() {
                @Override
                public void run() {
                    refresh();
                }
            };

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        setContentView(R.layout.welcome);
        settings = new Settings(this);
        test = App.test(this);
        consent =
                new MobileConsent(
                        this,
                        settings,
                        new Runnable() {
                            @Override
                            public void run() {
                                show();
                            }
                        });
        networks = new NetworkRows(this, (ViewGroup) findViewById(R.id.links), (RateGraph) findViewById(R.id.graph), consent);
        if (state == null) {
            ((EditText) findViewById(R.id.url)).setText(TestRun.URL);
        }
        ((TextView) findViewById(R.id.test_why)).setText(getString(R.string.test_why, TestRun.MILLIS / 1000, Formatter.formatShortFileSize(this, TestRun.MOST_BYTES)));
        click(
                R.id.agree,
                new View.OnClickListener() {
                    @Override
                    public void onClick(View v) {
                        consent.mobileData();
                    }
                });
        click(
                R.id.refuse,
                new View.OnClickListener() {
                    @Override
                    public void onClick(View v) {
                        settings.setMode(MobilePolicy.Mode.WIFI_ONLY);
                        show();
                    }
                });
        click(
                R.id.test,
                new View.OnClickListener() {
                    @Override
                    public void onClick(View v) {
                        toggle();
                    }
                });
        click(
                R.id.finish,
                new View.OnClickListener() {
                    @Override
                    public void onClick(View v) {
                        finish();
                    }
                });
    }

    private void click(int id, View.OnClickListener l) {
        findViewById(id).setOnClickListener(l);
    }

    @Override
    protected void onResume() {
        super.onResume();
        settings.setWelcomed();
        refresh();
    }

    @Override
    protected void onPause() {
        main.removeCallbacks(refresh);
        super.onPause();
    }

    @Override
    protected void onDestroy() {
        if (isFinishing()) {
            test.stop();
        }
        super.onDestroy();
    }

    private void toggle() {
        EditText line = (EditText) findViewById(R.id.url);
        String url = SharedText.url(line.getText().toString().trim());
        if (test.runs()) {
            test.stop();
        } else if (url == null) {
            line.setError(getString(R.string.no_url));
        } else {
            if (Build.VERSION.SDK_INT >= 33
                    && checkSelfPermission(Manifest.permission.POST_NOTIFICATIONS) != PackageManager.PERMISSION_GRANTED) {
                requestPermissions(new String[] {Manifest.permission.POST_NOTIFICATIONS}, 0); // from now on there is something to show
            }
            ProxyService.start(this);
            test.start(url);
        }
        refresh();
    }

    private void refresh() {
        show();
        main.removeCallbacks(refresh);
        main.postDelayed(refresh, REFRESH_MILLIS);
    }

    private void show() {
        MobilePolicy policy = settings.policy();
        MainActivity.set(this, R.id.chosen, getString(policy.mobileAllowed() ? R.string.chosen_mobile : R.string.chosen_wifi));
        findViewById(R.id.agree).setVisibility(policy.mobileAllowed() ? View.GONE : View.VISIBLE);
        findViewById(R.id.refuse).setVisibility(policy.mobileAllowed() ? View.VISIBLE : View.GONE);
        boolean runs = test.runs();
        DownloadState s = test.state();
        MainActivity.set(this, R.id.test, getString(runs ? R.string.test_stop : s == null ? R.string.test_start : R.string.test_again));
        findViewById(R.id.url).setEnabled(!runs);
        ProgressBar bar = (ProgressBar) findViewById(R.id.progress);
        bar.setVisibility(runs ? View.VISIBLE : View.GONE);
        bar.setProgress(s == null ? 0 : (int) Math.max(1000 * test.millis() / TestRun.MILLIS, 1000 * s.bytes / TestRun.MOST_BYTES));
        // Read aloud when the test is over, not each time the number of bytes grows.
        findViewById(R.id.result).setAccessibilityLiveRegion(runs ? View.ACCESSIBILITY_LIVE_REGION_NONE : View.ACCESSIBILITY_LIVE_REGION_POLITE);
        MainActivity.set(this, R.id.result, Texts.test(this, test));
        networks.show();
        ((Button) findViewById(R.id.finish)).setText(s == null || runs ? R.string.skip : R.string.done);
    }
}
