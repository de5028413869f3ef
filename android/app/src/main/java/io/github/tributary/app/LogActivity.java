package io.github.tributary.app;

import android.app.Activity;
import android.content.Context;
import android.content.Intent;
import android.content.pm.PackageManager;
import android.os.Build;
import android.os.Bundle;
import android.view.View;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.LinkRow;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.RelayState;
import io.github.tributary.core.Report;
import io.github.tributary.core.Status;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * Shows the daemon's log and the facts about the phone, and passes them to another app if the user wants that: nothing
 * is sent by itself.
 */
public final class LogActivity extends Activity {
    private static final String TEXT = "text";

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        setContentView(R.layout.log);
        final String text = state == null ? report() : state.getString(TEXT); // the user sends what was shown
        ((TextView) findViewById(R.id.log)).setText(text);
        findViewById(R.id.send)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                send(text);
                            }
                        });
    }

    @Override
    protected void onSaveInstanceState(Bundle state) {
        super.onSaveInstanceState(state);
        state.putString(TEXT, ((TextView) findViewById(R.id.log)).getText().toString());
    }

    private void send(String text) {
        Intent send = new Intent(Intent.ACTION_SEND).setType("text/plain").putExtra(Intent.EXTRA_SUBJECT, getString(R.string.log_subject));
        startActivity(Intent.createChooser(send.putExtra(Intent.EXTRA_TEXT, text), null));
    }

    private String report() {
        File log = Daemon.log(this);
        return Report.of(facts(), Report.before(log), log);
    }

    /** Returns the facts in English, like the log. */
    private List<String> facts() {
        MobilePolicy policy = new Settings(this).policy();
        List<String> facts = new ArrayList<String>();
        facts.add("Tributary " + version(this));
        facts.add("Android " + Build.VERSION.RELEASE + " (" + Build.VERSION.SDK_INT + "), " + Build.MANUFACTURER + " " + Build.MODEL);
        facts.add("ABIs " + Arrays.toString(Build.SUPPORTED_ABIS));
        facts.add("mobile data " + policy.mode + ", consent " + policy.consent + ", roaming " + policy.roaming);
        facts.add("other apps " + new Settings(this).reach() + ", runs " + ProxyService.runs() + ", wanted " + new Settings(this).run());
        facts.add("mobile data of other apps " + AppsChoice.access(this, new Settings(this)).choice);
        Status status = ProxyService.status();
        for (RelayState.Lane lane : status == null || status.relay == null ? Collections.<RelayState.Lane>emptyList() : status.relay.lanes) {
            facts.add("relay over " + lane.link + ": " + (lane.up ? "connected" : lane.code)); // its name is private
        }
        for (LinkRow row : ProxyService.links()) {
            String used = row.link == null ? "" : (", " + row.link.state + " " + row.link.reason).trim();
            facts.add("network " + row.net.kind + " " + row.net.name + ": " + row.use + used);
        }
        return facts;
    }

    /** Returns the version of this app. */
    static String version(Context context) {
        try {
            return context.getPackageManager().getPackageInfo(context.getPackageName(), 0).versionName;
        } catch (PackageManager.NameNotFoundException e) { // cannot happen: it is this app
            throw new IllegalStateException(e);
        }
    }
}
