package io.github.tributary.app;

import android.content.Context;
import android.icu.text.MeasureFormat;
import android.icu.util.Measure;
import android.icu.util.MeasureUnit;
import android.text.BidiFormatter;
import android.text.format.Formatter;
import io.github.tributary.R;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.EnergyUse;
import io.github.tributary.core.Failure;
import io.github.tributary.core.Limits;
import io.github.tributary.core.LinkRow;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.MobileRow;
import io.github.tributary.core.Net;
import io.github.tributary.core.RelayState;
import io.github.tributary.core.Shares;
import io.github.tributary.core.Status;
import java.util.Locale;
import java.util.Map;

/** Texts for people. */
final class Texts {
    private Texts() {}

    /** Returns a number of bytes. */
    static String size(Context c, long bytes) {
        return Formatter.formatFileSize(c, bytes);
    }

    /** Returns the name that people see for a network. */
    static String kind(Context c, Net.Kind kind) {
        switch (kind) {
            case WIFI:
                return c.getString(R.string.kind_wifi);
            case CELLULAR:
                return c.getString(R.string.kind_cellular);
            case ETHERNET:
                return c.getString(R.string.kind_ethernet);
            case SATELLITE:
                return c.getString(R.string.kind_satellite);
            case VPN:
                return c.getString(R.string.kind_vpn);
            default:
                return c.getString(R.string.kind_other);
        }
    }

    /**
     * Isolates a text whose direction may differ from its surroundings, such as a file name, so that both stay in
     * order.
     */
    static String isolated(Context c, String text) {
        return BidiFormatter.getInstance(c.getResources().getConfiguration().getLocales().get(0)).unicodeWrap(text);
    }

    /** Returns a number of bytes per second. */
    static String rate(Context c, long bytes) {
        return c.getString(R.string.rate, size(c, bytes));
    }

    /** Returns a time in its two largest units, like "2 hr, 5 min". */
    static String duration(Context c, long seconds) {
        Locale language = c.getResources().getConfiguration().getLocales().get(0);
        MeasureFormat format = MeasureFormat.getInstance(language, MeasureFormat.FormatWidth.SHORT);
        if (seconds < 60) {
            return format.formatMeasures(new Measure(seconds, MeasureUnit.SECOND));
        }
        long minutes = (seconds + 59) / 60;
        Measure m = new Measure(minutes % 60, MeasureUnit.MINUTE);
        return minutes < 60 ? format.formatMeasures(m) : format.formatMeasures(new Measure(minutes / 60, MeasureUnit.HOUR), m);
    }

    /** Returns the share of each network, like "Wi-Fi 62 %, Mobile data 38 %"; "" = nothing arrived yet. */
    static String shares(Context c, Shares brought) {
        StringBuilder b = new StringBuilder();
        for (Map.Entry<Net.Kind, Integer> e : brought.percent().entrySet()) {
            String share = c.getString(R.string.share, kind(c, e.getKey()), e.getValue());
            b.append(b.length() == 0 ? share : c.getString(R.string.and_then, share));
        }
        return b.toString();
    }

    /** Describes the graph for people who cannot see it. */
    static String rates(Context c, Map<Net.Kind, Long> rates) {
        StringBuilder b = new StringBuilder();
        for (Map.Entry<Net.Kind, Long> e : rates.entrySet()) {
            String one = c.getString(R.string.of_download, kind(c, e.getKey()), rate(c, e.getValue()));
            b.append(b.length() == 0 ? one : c.getString(R.string.and_then, one));
        }
        return b.length() == 0 ? c.getString(R.string.graph_idle) : c.getString(R.string.graph, b);
    }

    /** Returns what to say about mobile data while it has no network. */
    static String mobile(Context c, MobileRow row) {
        switch (row) {
            case NOT_WANTED:
                return c.getString(R.string.use_not_wanted);
            case NO_SIM:
                return c.getString(R.string.mobile_no_sim);
            case AIRPLANE:
                return c.getString(R.string.mobile_airplane);
            case OFF:
                return c.getString(R.string.mobile_off);
            case DATA_SAVER:
                return c.getString(R.string.use_data_saver);
            case BATTERY_SAVER:
                return c.getString(R.string.use_battery_saver);
            case SPENT:
                return c.getString(R.string.mobile_spent);
            case COMING:
                return c.getString(R.string.mobile_coming);
            case NOT_COMING:
                return c.getString(R.string.mobile_not_coming);
            default:
                return c.getString(R.string.mobile_ready);
        }
    }

    /** Returns what is done with a network, and why. status null = the daemon has not reported yet. */
    static String use(Context c, LinkRow row, Status status) {
        if (row.link != null) {
            return used(c, row.link, status);
        }
        switch (row.use) {
            case OFFERED:
                return c.getString(R.string.use_offered);
            case ROAMING:
                return c.getString(R.string.use_roaming);
            case DATA_SAVER:
                return c.getString(R.string.use_data_saver);
            case BLOCKED:
                return c.getString(R.string.use_blocked);
            case NOT_VALIDATED:
                return c.getString(R.string.use_not_validated);
            case NOT_WANTED:
                return c.getString(R.string.use_not_wanted);
            case BACKUP:
                return c.getString(R.string.use_backup);
            case BATTERY_SAVER:
                return c.getString(R.string.use_battery_saver);
            default:
                return c.getString(R.string.use_vpn);
        }
    }

    private static String used(Context c, Status.Link l, Status status) {
        boolean idle = l.state.equals("up") && (status == null || status.transfers == 0);
        String state = idle ? c.getString(R.string.use_offered) : state(c, l.state);
        String text = c.getString(R.string.use_used, state, size(c, l.bytes));
        long all = status == null ? 0 : status.bytes();
        if (l.bytes > 0 && all > l.bytes) {
            text = c.getString(R.string.use_share, text, (int) ((100 * l.bytes + all / 2) / all));
        }
        if (l.monthlyLeft >= 0) {
            text += c.getString(R.string.notification_left, size(c, l.monthlyLeft));
        }
        return l.reason.isEmpty() ? text : c.getString(R.string.use_reason, text, reason(c, l));
    }

    /** Returns why the daemon does not use a network; a newer daemon's reason in its own words. */
    private static String reason(Context c, Status.Link l) {
        switch (l.reason) {
            case "gone":
                return c.getString(R.string.reason_gone);
            case "silence":
                return c.getString(R.string.reason_silence);
            case "dial_failed":
                return c.getString(R.string.reason_dial_failed);
            case "bind_failed":
                return c.getString(R.string.reason_bind_failed);
            case "too_slow":
                return c.getString(R.string.reason_too_slow);
            case "no_gain":
                return c.getString(R.string.reason_no_gain);
            default:
                return l.monthlyLeft == 0 ? c.getString(R.string.reason_spent) : l.reason;
        }
    }

    private static String state(Context c, String state) {
        switch (state) {
            case "up":
                return c.getString(R.string.state_up);
            case "suspect":
                return c.getString(R.string.state_suspect);
            case "banned":
                return c.getString(R.string.state_banned);
            case "probing":
                return c.getString(R.string.state_probing);
            default:
                return c.getString(R.string.state_down);
        }
    }

    /** Returns what a download may cost. */
    static String cost(Context c, MobilePolicy policy) {
        if (!policy.mobileAllowed()) {
            return c.getString(R.string.cost_none);
        }
        String use = c.getString(policy.mode == MobilePolicy.Mode.MOBILE_HELPS ? R.string.cost_helps : R.string.cost_backup);
        String roaming = policy.roaming ? " " + c.getString(R.string.cost_roaming) : "";
        Limits l = policy.limits;
        String limit = l.monthlyBytes == 0 ? c.getString(R.string.cost_unlimited) : c.getString(R.string.cost_limit, size(c, l.monthlyBytes));
        String daily = l.dailyBytes == 0 ? "" : " " + c.getString(R.string.cost_daily, size(c, l.dailyBytes));
        return use + roaming + " " + limit + daily;
    }

    /** Returns the progress of a download, and in the end what it took. */
    static String download(Context c, Downloads.Entry e) {
        DownloadState s = e.state();
        String have = s.total() < 0 ? size(c, s.bytes) : c.getString(R.string.download_part, size(c, s.bytes), size(c, s.total()));
        switch (s.phase) {
            case DONE:
                String done = c.getString(R.string.download_done, size(c, s.bytes));
                return c.getString(R.string.download_battery, done, battery(c, e.used()));
            case PAUSED:
                return c.getString(s.resumable() ? R.string.download_paused : R.string.download_anew, have);
            case LATER:
                return c.getString(R.string.download_later, have);
            case QUEUED:
                return c.getString(R.string.download_queued, have);
            case WAITING:
                return c.getString(R.string.download_waits, failure(c, s.failure));
            case FAILED:
                return c.getString(R.string.download_failed, failure(c, s.failure));
            default:
                return running(c, e, have);
        }
    }

    private static String running(Context c, Downloads.Entry e, String have) {
        long rate = e.rate();
        if (rate < 0) {
            return have;
        }
        long left = e.secondsLeft();
        return left < 0 ? c.getString(R.string.download_rate, have, rate(c, rate)) : c.getString(R.string.download_left, have, rate(c, rate), duration(c, left));
    }

    /** Returns the progress or the result of a test; "" = there was none. */
    static String test(Context c, TestRun test) {
        DownloadState s = test.state();
        if (s == null) {
            return "";
        }
        long millis = Math.max(1, test.millis());
        if (test.runs()) {
            if (s.phase == DownloadState.Phase.WAITING) {
                return c.getString(R.string.download_waits, failure(c, s.failure));
            }
            return s.bytes == 0 ? c.getString(R.string.test_begins) : c.getString(R.string.download_rate, size(c, s.bytes), rate(c, 1000 * s.bytes / millis));
        }
        if (s.phase == DownloadState.Phase.FAILED) {
            return c.getString(R.string.download_failed, failure(c, s.failure));
        }
        if (s.bytes == 0) {
            return c.getString(R.string.test_nothing);
        }
        String all = c.getString(R.string.test_result, size(c, s.bytes), duration(c, (millis + 999) / 1000), rate(c, 1000 * s.bytes / millis));
        int networks = s.brought.percent().size();
        return networks < 2 ? c.getString(R.string.test_alone, all, shares(c, s.brought)) : c.getString(R.string.test_together, all, shares(c, s.brought));
    }

    /** Returns why a download failed: the text failure_CODE; for a newer daemon's code, its own words. */
    static String failure(Context c, Failure f) {
        int text = c.getResources().getIdentifier("failure_" + f.code, "string", c.getPackageName());
        if (text == 0) {
            return f.detail.isEmpty() ? c.getString(R.string.failure_unreachable, f.host) : f.detail;
        }
        return c.getString(text, f.host.isEmpty() ? c.getString(R.string.the_server) : isolated(c, f.host), f.status);
    }

    /**
     * Returns the state of the relay, or the result of the last wish. address "" = there is no relay; end null = no
     * wish has ended.
     */
    static String relay(Context c, String address, Status status, boolean busy, String end) {
        if (busy) {
            return c.getString(R.string.relay_busy);
        }
        if (end != null && !end.isEmpty()) {
            int text = c.getResources().getIdentifier("pair_failed_" + end, "string", c.getPackageName());
            return c.getString(R.string.pair_failed, c.getString(text == 0 ? R.string.pair_failed_unreachable : text));
        }
        if (address.isEmpty()) {
            return c.getString(R.string.relay_why);
        }
        if (status == null || status.relay == null) {
            return c.getString(R.string.relay_rests, address);
        }
        RelayState r = status.relay;
        StringBuilder lines = new StringBuilder(c.getString(r.refuses ? R.string.relay_refuses : R.string.relay_is, r.address));
        for (RelayState.Lane lane : r.lanes) {
            lines.append('\n').append(c.getString(R.string.link_row_short, lane.link, lane(c, lane)));
        }
        return lines.toString();
    }

    private static String lane(Context c, RelayState.Lane lane) {
        if (lane.up) {
            return c.getString(R.string.relay_connected);
        }
        switch (lane.code) {
            case "":
                return c.getString(R.string.relay_connecting);
            case "wrong_key":
                return c.getString(R.string.relay_wrong_key);
            case "not_accepted":
                return c.getString(R.string.relay_not_accepted);
            case "full":
                return c.getString(R.string.relay_full);
            case "restarted":
                return c.getString(R.string.relay_restarted);
            default:
                return c.getString(R.string.relay_unreachable);
        }
    }

    /** Returns what the phone used for a download, or why that is unknown. */
    static String battery(Context c, EnergyUse use) {
        if (use == null) {
            return c.getString(R.string.battery_part);
        }
        if (use.charged) {
            return c.getString(R.string.battery_charged);
        }
        if (Double.isNaN(use.joules)) {
            return c.getString(R.string.battery_unknown);
        }
        String joules = c.getString(R.string.battery_joules, use.joules);
        return Double.isNaN(use.percent) ? joules : c.getString(R.string.battery_joules_percent, joules, use.percent);
    }

    /** Returns the position of a progress bar in thousandths. */
    static int permille(DownloadState s) {
        return s.total() > 0 ? (int) (1000 * s.bytes / s.total()) : 0;
    }
}
