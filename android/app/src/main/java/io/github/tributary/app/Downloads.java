package io.github.tributary.app;

import android.content.Context;
import android.content.SharedPreferences;
import android.os.Handler;
import android.os.Looper;
import android.os.SystemClock;
import android.util.Log;
import io.github.tributary.core.BatteryMeter;
import io.github.tributary.core.DownloadJob;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.EnergyUse;
import io.github.tributary.core.Fetcher;
import io.github.tributary.core.LinkRow;
import io.github.tributary.core.Net;
import io.github.tributary.core.Pace;
import io.github.tributary.core.Source;
import io.github.tributary.core.Target;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/**
 * The downloads, including those of earlier processes. For the main thread, on which listeners are called; each running
 * download has a thread, which posts to it.
 */
class Downloads {
    /** Hears of every change. */
    interface Listener {
        /** A download has changed, or was removed. */
        void changed(Entry e);
    }

    /** A download as people see it. */
    static final class Entry {
        final int id;
        private DownloadState state;
        private DownloadJob job; // the running job; null = none
        private BatteryMeter battery; // null = another process fetched a part
        private EnergyUse used; // by a download that an earlier process ended; null = not known
        private long radiosUntil = -1; // end of their activity; -1 = it runs, or they rest
        private final Pace pace = new Pace();
        private boolean again; // to be run once its job has stopped
        private boolean removed;

        private Entry(int id, DownloadState state) {
            this.id = id;
            this.state = state;
        }

        DownloadState state() {
            return state;
        }

        /** Returns whether it was given up or removed from the list. */
        boolean removed() {
            return removed;
        }

        /** Returns the recent rate in bytes per second; -1 = it does not run, or the rate is not known yet. */
        long rate() {
            return pace.rate(SystemClock.elapsedRealtime());
        }

        /** Returns the seconds until it is done, at the current rate; -1 = unknown. */
        long secondsLeft() {
            return pace.secondsLeft(SystemClock.elapsedRealtime(), state.total());
        }

        /** Returns what the phone used during the download; null = unknown, since a part of it was not metered. */
        EnergyUse used() {
            return battery == null ? used : battery.use();
        }
    }

    private static final String TAG = "tributary";
    private static final String ID = "id";
    private static final String USED = "used";
    private static final String SAVED = "list";
    static final int FIRST_ID = 100; // also of notifications: those of downloads have higher ones
    private static final int DONE_KEPT = 20;
    static final int MOST_AT_ONCE = 3; // more would share the same networks and finish no sooner
    private static final long SAVE_MILLIS = 5_000; // between two saves of a running download
    private static final long METER_MILLIS = 1_000;

    private final Context context;
    private final SharedPreferences prefs;
    private final Handler main = new Handler(Looper.getMainLooper());
    private final BatteryReader reader;
    private final Map<Integer, Entry> entries = new LinkedHashMap<Integer, Entry>();
    private final List<Listener> listeners = new ArrayList<Listener>();
    private int lastId = FIRST_ID;
    private long savedAt;
    private boolean metering;
    private boolean suspended; // nothing queued begins by itself

    private final Runnable meter =
            new Runnable() {
                @Override
                public void run() {
                    measure();
                }
            };

    Downloads(Context context) {
        this.context = context;
        prefs = context.getSharedPreferences("downloads", Context.MODE_PRIVATE);
        reader = new BatteryReader(context);
        try {
            JSONArray all = new JSONArray(prefs.getString(SAVED, "[]"));
            for (int i = 0; i < all.length(); i++) {
                JSONObject o = all.getJSONObject(i);
                lastId = Math.max(lastId, o.getInt(ID)); // notifications of earlier processes name it
                Entry e = put(o.getInt(ID), DownloadState.parse(o));
                e.used = o.has(USED) ? EnergyUse.parse(o.getJSONObject(USED)) : null;
            }
        } catch (JSONException e) { // written by another version
            Log.w(TAG, "the list of downloads is lost", e);
        }
    }

    /** Returns what fills files. */
    Fetcher fetcher() {
        return App.fetches(context);
    }

    /** Returns the place for files. */
    Target.Files files() {
        return new Store(context);
    }

    /** Keeps the process and the daemon alive while anything runs. */
    void hold() {
        ProxyService.hold(context);
    }

    void listen(Listener l) {
        listeners.add(l);
    }

    void forget(Listener l) {
        listeners.remove(l);
    }

    /** Returns all downloads in order of arrival. */
    List<Entry> all() {
        return new ArrayList<Entry>(entries.values());
    }

    /** Returns the download; null = there is none, or it was removed. */
    Entry get(int id) {
        return entries.get(id);
    }

    /** Returns whether any runs, or waits for a retry. */
    boolean active() {
        for (Entry e : entries.values()) {
            if (e.state.active()) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether any continues by itself, now or later. */
    boolean left() {
        for (Entry e : entries.values()) {
            if (e.state.goesOn()) {
                return true;
            }
        }
        return false;
    }

    /** Starts a download. */
    Entry add(String url) {
        return add(Source.of(url), false);
    }

    /** Starts a download; unmetered = only over networks that cost nothing. */
    Entry add(Source source, boolean unmetered) {
        Entry e = put(++lastId, DownloadState.begin(source).unmetered(unmetered));
        e.battery = new BatteryMeter();
        resume(e);
        return e;
    }

    private Entry put(int id, DownloadState s) {
        Entry e = new Entry(id, s);
        entries.put(e.id, e);
        return e;
    }

    /** Resumes a download at the user's request. */
    void resume(Entry e) {
        run(e, e.state.wanted());
    }

    /** Restricts a download from now on to networks that cost nothing, or allows all permitted networks. */
    void unmetered(Entry e, boolean only) {
        if (e.job != null) {
            e.job.unmetered(only);
        } else if (!e.removed) {
            changed(e, e.state.unmetered(only));
        }
    }

    /** Returns whether any that continues by itself may use networks that cost money. */
    boolean leftForAll() {
        for (Entry e : entries.values()) {
            if (e.state.goesOn() && !e.state.unmetered) {
                return true;
            }
        }
        return false;
    }

    /** Resumes interrupted downloads, and starts queued ones, up to the number that may run at once. */
    void resumeInterrupted() {
        for (Entry e : all()) {
            if (e.state.goesOn() && !waitsForWifi(e)) {
                run(e, e.state.in(DownloadState.Phase.RUNNING));
            }
        }
    }

    /** Returns whether it would wait in vain for a network and keep others from running. */
    private static boolean waitsForWifi(Entry e) {
        return e.state.unmetered && ProxyService.allCost();
    }

    /** Starts the first queued downloads, if there is room. */
    private void next() {
        for (Entry e : all()) {
            if (e.state.phase == DownloadState.Phase.QUEUED && !waitsForWifi(e) && !full()) {
                run(e, e.state.in(DownloadState.Phase.RUNNING));
            }
        }
    }

    private boolean full() {
        int running = 0;
        for (Entry e : entries.values()) {
            running += e.job != null ? 1 : 0;
        }
        return running >= MOST_AT_ONCE;
    }

    /** Networks are available again: nothing waits any longer. */
    void online() {
        for (Entry e : entries.values()) {
            if (e.job != null) {
                e.job.wake();
            }
        }
        resumeInterrupted();
    }

    private void run(Entry e, DownloadState from) {
        if (e.removed || e.state.phase == DownloadState.Phase.DONE) {
            return;
        }
        if (e.job != null) {
            e.again = e.job.stops();
            return;
        }
        suspended = false;
        if (full()) {
            changed(e, from.in(DownloadState.Phase.QUEUED));
            return;
        }
        e.job = job(e, from);
        e.job.start();
        changed(e, from);
        hold();
        if (!metering) {
            measure();
        }
    }

    private DownloadJob job(final Entry e, DownloadState from) {
        return new DownloadJob(
                from,
                files(),
                fetcher(),
                new DownloadJob.Listener() {
                    @Override
                    public void now(final DownloadState state) {
                        main.post(
                                new Runnable() {
                                    @Override
                                    public void run() {
                                        told(e, state);
                                    }
                                });
                    }
                });
    }

    private void told(Entry e, DownloadState s) {
        boolean again = false;
        if (!s.active()) {
            e.job = null;
            again = e.again && s.goesOn();
            e.again = false;
            if (!suspended) { // before anybody hears that nothing runs
                next();
            }
        }
        if (again) {
            run(e, s.in(DownloadState.Phase.RUNNING));
        } else if (!e.removed) {
            changed(e, s);
        }
    }

    void pause(Entry e) {
        e.again = false;
        if (e.job != null) {
            e.job.pause();
        } else if (e.state.goesOn()) {
            changed(e, e.state.in(DownloadState.Phase.PAUSED));
        }
    }

    void pauseAll() {
        for (Entry e : all()) {
            pause(e);
        }
    }

    /** Stops running downloads until they can resume; queued ones wait for that, too. */
    void suspendAll() {
        suspended = true;
        for (Entry e : entries.values()) {
            e.again = false;
            if (e.job != null) {
                e.job.suspend();
            }
        }
    }

    /** Removes a download from the list, and deletes its file unless it is complete. */
    void remove(Entry e) {
        if (e.removed) {
            return;
        }
        e.removed = true;
        entries.remove(e.id);
        if (e.job == null || !e.job.giveUp()) {
            delete(e);
        }
        if (!suspended) {
            next();
        }
        changed(e, e.state);
    }

    /** Deletes the file of a download that has no job. */
    private void delete(Entry e) {
        if (e.state.phase != DownloadState.Phase.DONE && !e.state.place.isEmpty()) {
            DownloadJob last = job(e, e.state);
            last.giveUp();
            last.start();
        }
    }

    private void changed(Entry e, DownloadState s) {
        boolean step = e.removed || s.phase != e.state.phase || s.unmetered != e.state.unmetered || s.version != e.state.version && !s.version.validator.equals(e.state.version.validator);
        e.state = s;
        if (s.phase == DownloadState.Phase.RUNNING) {
            e.pace.add(SystemClock.elapsedRealtime(), s.bytes);
        } else {
            e.pace.reset();
        }
        if (step || SystemClock.elapsedRealtime() - savedAt >= SAVE_MILLIS) {
            save();
        }
        show(e);
    }

    /** Makes all listeners show a download. */
    void show(Entry e) {
        for (Listener l : new ArrayList<Listener>(listeners)) {
            l.changed(e);
        }
    }

    private void save() {
        savedAt = SystemClock.elapsedRealtime();
        int old = -DONE_KEPT; // this many finished ones are dropped
        for (Entry e : entries.values()) {
            old += e.state.phase == DownloadState.Phase.DONE ? 1 : 0;
        }
        JSONArray all = new JSONArray();
        try {
            for (Entry e : entries.values()) {
                if (e.state.phase != DownloadState.Phase.DONE || old-- <= 0) {
                    boolean known = e.state.phase == DownloadState.Phase.DONE && e.radiosUntil < 0 && e.used() != null;
                    all.put(e.state.toJson().put(ID, e.id).put(USED, known ? e.used().toJson() : null));
                }
            }
        } catch (JSONException e) {
            throw new IllegalStateException(e); // only for NaN and infinite numbers
        }
        prefs.edit().putString(SAVED, all.toString()).apply();
    }

    /** Returns how long the radios stay awake after the last byte, by the networks that carried something. */
    long tailMillis() {
        for (LinkRow row : ProxyService.links()) {
            if (row.net.kind == Net.Kind.CELLULAR && row.link != null && row.link.bytes > 0) {
                return BatteryMeter.MOBILE_TAIL_MILLIS;
            }
        }
        return BatteryMeter.WIFI_TAIL_MILLIS;
    }

    /** Reads the battery for running downloads, and for ended ones until the radios rest. */
    private void measure() {
        metering = active();
        long now = SystemClock.elapsedRealtime();
        for (Entry e : all()) {
            if (e.battery == null) {
                continue;
            }
            if (e.state.active()) {
                e.radiosUntil = now + tailMillis();
                e.battery.add(reader.read(), now);
            } else if (e.radiosUntil >= 0) {
                e.battery.add(reader.read(), now);
                if (now < e.radiosUntil) {
                    metering = true;
                } else {
                    e.radiosUntil = -1;
                    e.battery.pause();
                    save();
                    show(e);
                }
            }
        }
        if (metering) {
            main.postDelayed(meter, METER_MILLIS);
        }
    }
}
