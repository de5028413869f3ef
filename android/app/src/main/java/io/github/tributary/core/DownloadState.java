package io.github.tributary.core;

import org.json.JSONException;
import org.json.JSONObject;

/** How far a download is. A value, and what is kept of it when the process ends. */
public final class DownloadState {
    /** What it does. */
    public enum Phase {
        RUNNING,
        /** As many as may run do: it begins by itself when one of them ends. */
        QUEUED,
        /** It broke off, and is tried again by itself. */
        WAITING,
        /** It broke off for long, or its process ended: it is resumed by itself, as soon as the app or a job runs. */
        LATER,
        PAUSED,
        FAILED,
        DONE
    }

    public final Source source;

    /** What people see: from the URL, and in the end what the server says. */
    public final String name;

    /** The file, "" = it has none yet; see {@link Target#place}. */
    public final String place;

    public final Phase phase;

    /** Of which the file holds the first bytes. */
    public final Version version;

    public final long bytes;

    /** Of these, those that survive a dead battery: where it is resumed. */
    public final long kept;

    /** Why it waits or failed; NONE otherwise. */
    public final Failure failure;

    /** By which networks its bytes came, those of earlier fills too. */
    public final Shares brought;

    /** Whether only networks that cost nothing may carry it. */
    public final boolean unmetered;

    private static final int MOST_ROUNDS = 20; // half an hour to some days, as the system spaces them

    private final int rounds; // that ended without a byte more to keep

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

    /** A download that has not begun, nor a file. */
    public static DownloadState begin(String url) {
        return begin(Source.of(url));
    }

    /** A download that has not begun, nor a file. */
    public static DownloadState begin(Source source) {
        return new DownloadState(source, FileName.of(source.url), "", Phase.PAUSED, Version.NONE, 0, 0, Failure.NONE, 0, Shares.NONE, false);
    }

    /** The same, for networks that cost nothing alone, or for all that are allowed. */
    public DownloadState unmetered(boolean only) {
        return new DownloadState(source, name, place, phase, version, bytes, kept, failure, rounds, brought, only);
    }

    /** The same with a file. */
    public DownloadState with(String place) {
        return new DownloadState(source, name, place, phase, version, bytes, kept, failure, rounds, brought, unmetered);
    }

    /** The same, of which nothing is there any more, not even a file. */
    public DownloadState emptied() {
        return new DownloadState(source, name, "", phase, Version.NONE, 0, 0, failure, rounds, Shares.NONE, unmetered);
    }

    /** The same, as far as its fill is now. */
    public DownloadState at(Fetcher.Step s) {
        int idle = s.kept > kept ? 0 : rounds;
        return new DownloadState(source, s.name.isEmpty() ? name : s.name, place, phase, s.version, s.bytes, s.kept, failure, idle, brought, unmetered);
    }

    /** The same, with what each network has brought. */
    public DownloadState with(Shares brought) {
        return new DownloadState(source, name, place, phase, version, bytes, kept, failure, rounds, brought, unmetered);
    }

    /** The same in another phase, for which nothing is to blame. */
    public DownloadState in(Phase phase) {
        return in(phase, Failure.NONE);
    }

    /** The same in another phase, and why. */
    public DownloadState in(Phase phase, Failure failure) {
        return new DownloadState(source, name, place, phase, version, bytes, kept, failure, rounds, brought, unmetered);
    }

    /** The same, begun or resumed by the user. */
    public DownloadState wanted() {
        return new DownloadState(source, name, place, Phase.RUNNING, version, bytes, kept, Failure.NONE, 0, brought, unmetered);
    }

    /**
     * The same, stopped by nobody's wish: it goes on by itself, unless it would have to begin anew, which may cost what was
     * spent already.
     */
    public DownloadState interrupted() {
        return in(resumable() ? Phase.LATER : Phase.PAUSED);
    }

    /** The same after it failed in vain for long, though it may work another time. It may wait for a network as long as it takes. */
    public DownloadState brokenOff(Failure failure) {
        int rounds = failure.code.equals(Failure.NO_LINK) ? this.rounds - 1 : this.rounds;
        boolean later = resumable() && rounds < MOST_ROUNDS;
        return new DownloadState(source, name, place, later ? Phase.LATER : Phase.FAILED, version, bytes, kept, failure, rounds + 1, brought, unmetered);
    }

    /** Whether nothing is lost if it stops. */
    public boolean resumable() {
        return bytes == 0 || !version.validator.isEmpty();
    }

    /** How much there is; -1 = not known. */
    public long total() {
        return phase == Phase.DONE ? bytes : version.size;
    }

    /** Whether it goes on by itself, now or later. */
    public boolean goesOn() {
        return active() || phase == Phase.QUEUED || phase == Phase.LATER;
    }

    /** Whether a thread works for it. */
    public boolean active() {
        return phase == Phase.RUNNING || phase == Phase.WAITING;
    }

    public JSONObject toJson() {
        try {
            JSONObject o = new JSONObject();
            if (phase != Phase.DONE) { // nobody needs it any more, and it may be secret
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
            throw new IllegalStateException(e); // only for numbers that are none
        }
    }

    /** What {@link #toJson} wrote. A download that ran was interrupted: the process that ran it is gone. */
    public static DownloadState parse(JSONObject o) throws JSONException {
        Phase phase;
        try {
            phase = Phase.valueOf(o.getString("phase"));
        } catch (IllegalArgumentException e) { // of another version
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
