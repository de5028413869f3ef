package io.github.tributary.app;

import android.Manifest;
import android.app.Activity;
import android.app.PendingIntent;
import android.content.Context;
import android.content.Intent;
import android.content.pm.PackageManager;
import android.os.Build;
import android.os.Bundle;
import android.os.Handler;
import android.os.Looper;
import android.view.View;
import android.view.ViewGroup;
import android.widget.Button;
import android.widget.CheckBox;
import android.widget.CompoundButton;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.Status;

/** The main screen: start and stop, what runs, what mobile data may be used for, and how apps find the proxy. */
public final class MainActivity extends Activity {
    /** The manifest's alias for the screen that also starts the proxy. Other apps cannot use that name. */
    private static final String START = "io.github.tributary.app.StartActivity";

    private static final String REMOVE = "io.github.tributary.REMOVE";

    private static final long REFRESH_MILLIS = 1_000;

    private final Handler main = new Handler(Looper.getMainLooper());
    private Settings settings;
    private MobileChoice mobile;
    private ReachChoice reach;
    private RelayChoice relay;
    private AddressChoice address;
    private DownloadList downloads;
    private NetworkRows networks;

    private final Runnable refresh =
            new Runnable() {
                @Override
                public void run() {
                    refresh();
                }
            };

    /** Opens the screen and starts the proxy. */
    static Intent starting(Context context) {
        return new Intent().setClassName(context, START);
    }

    /** Opens the screen and asks whether to delete a download. */
    static PendingIntent removing(Context context, int id) {
        Intent intent = new Intent(context, MainActivity.class).setAction(REMOVE).putExtra(DownloadReceiver.ID, id);
        return PendingIntent.getActivity(context, id, intent, PendingIntent.FLAG_IMMUTABLE | PendingIntent.FLAG_UPDATE_CURRENT);
    }

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        setContentView(R.layout.main);
        settings = new Settings(this);
        mobile = new MobileChoice(this, settings);
        mobile.bind();
        reach = new ReachChoice(this, settings);
        reach.bind();
        relay = new RelayChoice(this, settings);
        relay.bind();
        address = new AddressChoice(this, settings);
        address.bind();
        findViewById(R.id.apps)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                AppsChoice.ask(MainActivity.this);
                            }
                        });
        networks = new NetworkRows(this, (ViewGroup) findViewById(R.id.links), (RateGraph) findViewById(R.id.graph), mobile.consent());
        downloads = new DownloadList(this);
        downloads.bind();
        boolean starting = getIntent().getComponent().getClassName().equals(START);
        if (state == null && !starting && !settings.welcomed()) {
            startActivity(new Intent(this, WelcomeActivity.class));
        }
        findViewById(R.id.around)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                BypassChoice.ask(MainActivity.this);
                            }
                        });
        findViewById(R.id.log)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                startActivity(new Intent(MainActivity.this, LogActivity.class));
                            }
                        });
        set(this, R.id.about, getString(R.string.about, LogActivity.version(this)));
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
    }

    @Override
    protected void onResume() {
        super.onResume();
        boolean asked = START.equals(getIntent().getComponent().getClassName());
        if (asked) {
            setIntent(new Intent(this, MainActivity.class)); // only once
        }
        if ((asked || settings.run()) && !ProxyService.runs()) { // the system ended it, and allows a start here
            ProxyService.start(this);
        }
        if (asked || ProxyService.runs()) {
            askAboutMobileData();
        }
        mobile.show(); // the first run or a notification may have changed it
        downloads.resume();
        Downloads.Entry e = App.downloads(this).get(getIntent().getIntExtra(DownloadReceiver.ID, 0));
        if (e != null && REMOVE.equals(getIntent().getAction())) {
            setIntent(new Intent(this, MainActivity.class)); // only once
            downloads.ask(e); // also if nothing would be lost: any app can send this
        }
        App.downloads(this).resumeInterrupted(); // the system allows the daemon to start here
        refresh();
    }

    @Override
    protected void onNewIntent(Intent intent) {
        super.onNewIntent(intent);
        setIntent(intent);
    }

    @Override
    protected void onPause() {
        main.removeCallbacks(refresh);
        App.endSeen(this);
        downloads.pause();
        mobile.save();
        super.onPause();
    }

    @Override
    protected void onActivityResult(int request, int result, Intent data) {
        super.onActivityResult(request, result, data);
        reach.answered(request, result);
    }

    private void toggle() {
        if (ProxyService.runs()) {
            ProxyService.stop(this);
        } else {
            askForNotifications();
            ProxyService.start(this);
            askAboutMobileData();
        }
        refresh();
    }

    /** Asks about mobile data, which could be used from now on. */
    void askAboutMobileData() {
        mobile.consent().first();
    }

    /** Asks for notifications; the proxy also runs without them. */
    void askForNotifications() {
        if (Build.VERSION.SDK_INT >= 33
                && checkSelfPermission(Manifest.permission.POST_NOTIFICATIONS) != PackageManager.PERMISSION_GRANTED) {
            requestPermissions(new String[] {Manifest.permission.POST_NOTIFICATIONS}, 0);
        }
    }

    @Override
    public void onRequestPermissionsResult(int request, String[] permissions, int[] results) {
        super.onRequestPermissionsResult(request, permissions, results);
        if (request == StoragePermission.REQUEST) {
            downloads.begin(); // whatever the answer
        }
    }

    private void refresh() {
        show();
        main.removeCallbacks(refresh);
        main.postDelayed(refresh, REFRESH_MILLIS);
    }

    private void show() {
        boolean run = ProxyService.runs();
        ((Button) findViewById(R.id.toggle)).setText(run ? R.string.stop : R.string.start);
        String trouble = ProxyService.trouble();
        String state = run ? getString(R.string.running, Texts.isolated(this, ProxyService.LISTEN)) : getString(R.string.stopped);
        set(this, R.id.state, run && !trouble.isEmpty() ? trouble : state);
        String ended = App.ended(this);
        findViewById(R.id.ended).setVisibility(ended.isEmpty() ? View.GONE : View.VISIBLE);
        set(this, R.id.ended, ended);
        boolean rows = networks.show();
        Status status = ProxyService.status();
        String links = status == null ? "" : getString(R.string.notification_total, Texts.size(this, status.bytes()));
        String text = rows ? links : getString(run ? R.string.no_links : R.string.links_stopped);
        findViewById(R.id.links_text).setVisibility(text.isEmpty() ? View.GONE : View.VISIBLE);
        set(this, R.id.links_text, text);
        downloads.refresh();
        reach.show();
        relay.show();
        address.show();
        set(this, R.id.apps, getString(R.string.apps_now, AppsChoice.name(this, AppsChoice.access(this, settings).choice)));
    }

    /** Sets a text if it has changed: the screen reader reads each one aloud. */
    static void set(Activity screen, int id, String text) {
        TextView v = (TextView) screen.findViewById(id);
        if (!text.contentEquals(v.getText())) {
            v.setText(text);
        }
    }
}
