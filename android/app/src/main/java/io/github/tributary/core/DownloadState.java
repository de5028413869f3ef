package io.github.tributary.core;

import org.json.JSONException;
import org.json.JSONObject;

/** The progress of a download. A value, and what is stored of it when the process ends. */
public final class DownloadState {
    /** What it is doing. */
    public enum Phase {
        RUNNING,
        /** As many as allowed are running: it starts by itself when one of them ends. */
        QUEUED,
        /** It broke off and is retried by itself. */
        WAITING,
        /**
         * It broke off for a long time, or its process ended: it resumes by itself as soon as the app or a job runs.
         */
        LATER,
        PAUSED,
        FAILED,
        DONE
    }

    public final Source source;

    /** The name that people see: from the URL at first, and in the end from the server. */
    public final String name;

    /** The file; "" = none yet; see {@link Target#place}. */
    public final String place;

    public final Phase phase;

    /** The version whose first bytes the file holds. */
    public final Version version;

    public final long bytes;

    /** How many of these survive a dead battery: where it resumes. */
    public final long kept;

    /** Why it waits or failed; NONE otherwise. */
    public final Failure failure;

    /** The bytes that each network brought, including those of earlier fills. */
    public final Shares brought;

    /** Whether only networks that cost nothing may carry it. */
    public final boolean unmetered;

    private static final int MOST_ROUNDS = 20; // half an hour to some days, as the system spaces them

    private final int rounds; // rounds that ended without another byte to keep

    private DownloadState(
            Source source, String name, String place, Phase phase, Version version, long bytes, long kept, Failure failure, int rounds, Shares brought, boolean unmetered) {
        this.source = source;
        this.name = name;
        this.place = place;
        this.phase = phase;
        this.version = version;
        this.bytes = bytes;
        this.kept = kept;
        this.failure = failure;
        this.rounds = rounds;
        this.brought = brought;
        this.unmetered = unmetered;
    }

    /** Returns a download that has not started and has no file. */
    public static DownloadState begin(String url) {
        return begin(Source.of(url));
    }

    /** Returns a download that has not started and has no file. */
    public static DownloadState begin(Source source) {
        return new DownloadState(source, FileName.of(source.url), "", Phase.PAUSED, Version.NONE, 0, 0, Failure.NONE, 0, Shares.NONE, false);
    }

    /** Returns the same, restricted to networks that cost nothing, or for all that are allowed. */
    public DownloadState unmetered(boolean only) {
        return new DownloadState(source, name, place, phase, version, bytes, kept, failure, rounds, brought, only);
    }

    /** Returns the same with a file. */
    public DownloadState with(String place) {
        return new DownloadState(source, name, place, phase, version, bytes, kept, failure, rounds, brought, unmetered);
    }

    /** Returns the same without any bytes and without a file. */
    public DownloadState emptied() {
        return new DownloadState(source, name, "", phase, Version.NONE, 0, 0, failure, rounds, Shares.NONE, unmetered);
    }

    /** Returns the same with the progress of its fill. */
    public DownloadState at(Fetcher.Step s) {
        int idle = s.kept > kept ? 0 : rounds;
        return new DownloadState(source, s.name.isEmpty() ? name : s.name, place, phase, s.version, s.bytes, s.kept, failure, idle, brought, unmetered);
    }

    /** Returns the same with the bytes that each network brought. */
    public DownloadState with(Shares brought) {
        return new DownloadState(source, name, place, phase, version, bytes, kept, failure, rounds, brought, unmetered);
    }

    /** Returns the same in another phase, without a failure. */
    public DownloadState in(Phase phase) {
        return in(phase, Failure.NONE);
    }

    /** Returns the same in another phase, with the reason. */
    public DownloadState in(Phase phase, Failure failure) {
        return new DownloadState(source, name, place, phase, version, bytes, kept, failure, rounds, brought, unmetered);
    }

    /** Returns the same, started or resumed by the user. */
    public DownloadState wanted() {
        return new DownloadState(source, name, place, Phase.RUNNING, version, bytes, kept, Failure.NONE, 0, brought, unmetered);
    }

    /**
     * Returns the same, stopped though the user did not ask for it: it resumes by itself, unless it would have to start
     * over, which may cost again what was already spent.
     */
    public DownloadState interrupted() {
        return in(resumable() ? Phase.LATER : Phase.PAUSED);
    }

    /**
     * Returns the same after it failed for a long time, though it may work later. It may wait for a network
     * indefinitely.
     */
    public DownloadState brokenOff(Failure failure) {
        int rounds = failure.code.equals(Failure.NO_LINK) ? this.rounds - 1 : this.rounds;
        boolean later = resumable() && rounds < MOST_ROUNDS;
        return new DownloadState(source, name, place, later ? Phase.LATER : Phase.FAILED, version, bytes, kept, failure, rounds + 1, brought, unmetered);
    }

    /** Returns whether stopping it loses nothing. */
    public boolean resumable() {
        return bytes == 0 || !version.validator.isEmpty();
    }

    /** Returns the full size in bytes; -1 = unknown. */
    public long total() {
        return phase == Phase.DONE ? bytes : version.size;
    }

    /** Returns whether it continues by itself, now or later. */
    public boolean goesOn() {
        return active() || phase == Phase.QUEUED || phase == Phase.LATER;
    }

    /** Returns whether a thread is working on it. */
    public boolean active() {
        return phase == Phase.RUNNING || phase == Phase.WAITING;
    }

    public JSONObject toJson() {
        try {
            JSONObject o = new JSONObject();
            if (phase != Phase.DONE) { // no longer needed, and possibly secret
                source.write(o);
            }
            return o.put("url", source.url)
                    .put("name", name)
                    .put("place", place)
                    .put("phase", phase.name())
                    .put("validator", version.validator)
                    .put("mark", version.mark)
                    .put("size", version.size)
                    .put("found", version.place)
                    .put("bytes", bytes)
                    .put("kept", kept)
                    .put("failure", failure.toJson())
                    .put("rounds", rounds)
                    .put("brought", brought.toJson())
                    .put("unmetered", unmetered);
        } catch (JSONException e) {
            throw new IllegalStateException(e); // only for NaN and infinite numbers
        }
    }

    /** Parses what {@link #toJson} wrote. A running download was interrupted: the process that ran it is gone. */
    public static DownloadState parse(JSONObject o) throws JSONException {
        Phase phase;
        try {
            phase = Phase.valueOf(o.getString("phase"));
        } catch (IllegalArgumentException e) { // from another version
            phase = Phase.PAUSED;
        }
        DownloadState s =
                new DownloadState(
                        Source.parse(o),
                        o.getString("name"),
                        o.getString("place"),
                        phase,
                        new Version(o.optString("validator"), o.optString("mark"), o.optLong("size", -1), o.optString("found")),
                        o.optLong("bytes"),
                        o.optLong("kept"),
                        o.has("failure") ? Failure.parse(o.getJSONObject("failure")) : Failure.NONE,
                        o.optInt("rounds"),
                        Shares.parse(o.optJSONObject("brought")),
                        o.optBoolean("unmetered"));
        return s.active() ? s.interrupted() : s;
    }
}
