package io.github.tributary.app;

import android.app.Activity;
import android.content.ActivityNotFoundException;
import android.content.Intent;
import android.content.res.ColorStateList;
import android.net.Uri;
import android.os.Build;
import android.os.SystemClock;
import android.provider.Settings;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.Button;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.LinkRow;
import io.github.tributary.core.MobileRow;
import io.github.tributary.core.Net;
import io.github.tributary.core.Offer;
import io.github.tributary.core.RateHistory;
import io.github.tributary.core.Status;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The rows of the networks: how fast each one is, what is done with it, and what the user can do if it is not used. */
final class NetworkRows {
    /** Asks the user for permissions that Tributary does not have yet. */
    interface Consent {
        void mobileData();

        void roaming();

        void batterySaver();
    }

    private final Activity screen;
    private final ViewGroup list;
    private final RateGraph graph;
    private final Consent consent;

    NetworkRows(Activity screen, ViewGroup list, RateGraph graph, Consent consent) {
        this.screen = screen;
        this.list = list;
        this.graph = graph;
        this.consent = consent;
    }

    /** Shows the current state. Returns whether there is a row. */
    boolean show() {
        List<LinkRow> rows = ProxyService.links();
        Status status = ProxyService.status();
        MobileRow mobile = ProxyService.mobile();
        RateHistory history = ProxyService.rates();
        long now = SystemClock.elapsedRealtime();
        Map<Net.Kind, Long> rates = history == null ? Collections.<Net.Kind, Long>emptyMap() : history.now(now);
        int count = rows.size() + (mobile == MobileRow.NONE ? 0 : 1);
        while (list.getChildCount() > count) {
            list.removeViewAt(list.getChildCount() - 1);
        }
        while (list.getChildCount() < count) {
            LayoutInflater.from(screen).inflate(R.layout.network, list);
        }
        Map<Net.Kind, Integer> kinds = new HashMap<Net.Kind, Integer>();
        for (LinkRow row : rows) {
            Integer n = kinds.get(row.net.kind);
            kinds.put(row.net.kind, n == null ? 1 : n + 1);
        }
        int i = 0;
        for (LinkRow row : rows) {
            Net.Kind kind = row.net.kind;
            String name = Texts.kind(screen, kind);
            if (kinds.get(kind) > 1) {
                name = screen.getString(R.string.network_named, name, Texts.isolated(screen, row.net.name));
            }
            String rate = row.link == null || !rates.containsKey(kind) ? "" : Texts.rate(screen, row.link.goodput);
            fill(list.getChildAt(i++), kind, name, rate, Texts.use(screen, row, status), step(row.use));
        }
        if (mobile != MobileRow.NONE) {
            fill(list.getChildAt(i), Net.Kind.CELLULAR, Texts.kind(screen, Net.Kind.CELLULAR), "", Texts.mobile(screen, mobile), step(mobile));
        }
        graph.setVisibility(history == null ? View.GONE : View.VISIBLE);
        if (history != null) {
            graph.show(history.points(now), Texts.rates(screen, rates));
        }
        return count > 0;
    }

    private void fill(View row, Net.Kind kind, String name, String rate, String use, final Step step) {
        row.findViewById(R.id.mark).setBackgroundTintList(ColorStateList.valueOf(screen.getColor(RateGraph.color(kind))));
        set(row, R.id.network, name);
        set(row, R.id.rate, rate);
        set(row, R.id.use, use);
        String all = screen.getString(R.string.of_download, rate.isEmpty() ? name : name + ", " + rate, use);
        View text = row.findViewById(R.id.row);
        if (!all.contentEquals(text.getContentDescription() == null ? "" : text.getContentDescription())) {
            text.setContentDescription(all);
        }
        Button button = (Button) row.findViewById(R.id.mend);
        button.setVisibility(step == null ? View.GONE : View.VISIBLE);
        if (step != null) {
            button.setText(step.label);
            button.setContentDescription(screen.getString(R.string.of_download, screen.getString(step.label), name));
            button.setOnClickListener(step);
        }
    }

    private static void set(View row, int id, String text) {
        TextView v = (TextView) row.findViewById(id);
        if (!text.contentEquals(v.getText())) {
            v.setText(text);
        }
    }

    /** The action of a row's button. */
    private abstract static class Step implements View.OnClickListener {
        final int label;

        Step(int label) {
            this.label = label;
        }
    }

    private Step settings(final Intent place) {
        return new Step(R.string.open_settings) {
            @Override
            public void onClick(View v) {
                try {
                    screen.startActivity(place);
                } catch (ActivityNotFoundException e) { // not every phone has each screen
                    screen.startActivity(new Intent(Settings.ACTION_SETTINGS));
                }
            }
        };
    }

    private Intent about(String action) {
        return new Intent(action, Uri.fromParts("package", screen.getPackageName(), null));
    }

    /** Returns the screen where mobile data and airplane mode are switched. */
    private static Intent internet() {
        return new Intent(Build.VERSION.SDK_INT >= 29 ? Settings.Panel.ACTION_INTERNET_CONNECTIVITY : Settings.ACTION_WIRELESS_SETTINGS);
    }

    private Step step(Offer.Use use) {
        switch (use) {
            case NOT_VALIDATED:
                return settings(new Intent(Settings.ACTION_WIFI_SETTINGS));
            case DATA_SAVER:
                return settings(about(Settings.ACTION_IGNORE_BACKGROUND_DATA_RESTRICTIONS_SETTINGS));
            case BLOCKED:
                return settings(about(Settings.ACTION_APPLICATION_DETAILS_SETTINGS));
            case NOT_WANTED:
                return allow();
            case ROAMING:
                return new Step(R.string.roaming_agree) {
                    @Override
                    public void onClick(View v) {
                        consent.roaming();
                    }
                };
            case BATTERY_SAVER:
                return anyway();
            default:
                return null;
        }
    }

    private Step step(MobileRow mobile) {
        switch (mobile) {
            case NOT_WANTED:
                return allow();
            case OFF:
            case AIRPLANE:
            case NOT_COMING:
                return settings(internet());
            case DATA_SAVER:
                return settings(about(Settings.ACTION_IGNORE_BACKGROUND_DATA_RESTRICTIONS_SETTINGS));
            case BATTERY_SAVER:
                return anyway();
            default:
                return null;
        }
    }

    private Step anyway() {
        return new Step(R.string.use_anyway) {
            @Override
            public void onClick(View v) {
                consent.batterySaver();
            }
        };
    }

    private Step allow() {
        return new Step(R.string.agree) {
            @Override
            public void onClick(View v) {
                consent.mobileData();
            }
        };
    }
}
