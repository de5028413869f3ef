package io.github.tributary.core;

import org.json.JSONException;
import org.json.JSONObject;

/** How far a download is. A value, and what is kept of it when the process ends. */
public final class DownloadState {
    /** What it does. */
    public enum Phase {
        RUNNING,
        /** It broke off, and is tried again by itself. */
        WAITING,
        PAUSED,
        FAILED,
        DONE
    }

    public final String url;

    /** What people see: from the URL, and in the end what the server says. */
    public final String name;

    /** The file, "" = it has none yet; see {@link Target#place}. */
    public final String place;

    public final Phase phase;

    /** What names the version of which the file holds the first bytes; "" = it cannot be gone on with. */
    public final String validator;

    public final long bytes;

    /** -1 = not known. */
    public final long total;

    /** Why it waits or failed; "" otherwise. */
    public final String error;

    private DownloadState(
            String url, String name, String place, Phase phase, String validator, long bytes, long total, String error) {
        this.url = url;
        this.name = name;
        this.place = place;
        this.phase = phase;
        this.validator = validator;
        this.bytes = bytes;
        this.total = total;
        this.error = error;
    }

    /** A download that has not begun, nor a file. */
    public static DownloadState begin(String url) {
        return new DownloadState(url, FileName.of(url), "", Phase.PAUSED, "", 0, -1, "");
    }

    /** The same with a file. */
    public DownloadState with(String place) {
        return new DownloadState(url, name, place, phase, validator, bytes, total, error);
    }

    /** The same, as far as the download is now. */
    public DownloadState at(Download d) {
        return new DownloadState(
                url, d.name().isEmpty() ? name : d.name(), place, phase, d.validator(), d.bytes(), d.total(), error);
    }

    /** The same in another phase, for a reason or "". */
    public DownloadState in(Phase phase, String error) {
        return new DownloadState(url, name, place, phase, validator, bytes, total, error);
    }

    /** Whether a thread works for it. */
    public boolean active() {
        return phase == Phase.RUNNING || phase == Phase.WAITING;
    }

    public JSONObject toJson() {
        try {
            return new JSONObject()
                    .put("url", url)
                    .put("name", name)
                    .put("place", place)
                    .put("phase", phase.name())
                    .put("validator", validator)
                    .put("bytes", bytes)
                    .put("total", total)
                    .put("error", error);
        } catch (JSONException e) {
            throw new IllegalStateException(e); // only for numbers that are none
        }
    }

    /** What {@link #toJson} wrote. A download that ran is paused: the process that ran it is gone. */
    public static DownloadState parse(JSONObject o) throws JSONException {
        Phase phase;
        try {
            phase = Phase.valueOf(o.getString("phase"));
        } catch (IllegalArgumentException e) { // of another version
            phase = Phase.PAUSED;
        }
        DownloadState s =
                new DownloadState(
                        o.getString("url"),
                        o.getString("name"),
                        o.getString("place"),
                        phase,
                        o.optString("validator"),
                        o.optLong("bytes"),
                        o.optLong("total", -1),
                        o.optString("error"));
        return s.active() ? s.in(Phase.PAUSED, "") : s;
    }
}
