package io.github.tributary.core;

import org.json.JSONException;
import org.json.JSONObject;

/** Why a download failed. A value: the app chooses its texts for people by the code. */
public final class Failure {
    // The app's own codes; the daemon's are in docs/APPBRIDGE.md.

    /** The daemon has not started yet. */
    public static final String STARTING = "starting";

    /** The daemon ended, or does not answer. */
    public static final String DAEMON = "daemon";

    /** The phone does not let the app write the file. */
    public static final String FILE = "file";

    /** Reported by the daemon: there is no network that it may use. */
    static final String NO_LINK = "no_link";

    public static final Failure NONE = new Failure("", "", 0, "");

    /** "" = there was no failure. */
    public final String code;

    /** The server; "" = no server is to blame. */
    public final String host;

    /** The status of the server's HTTP answer; 0 = there was none. */
    public final int status;

    /** The details in English, for the log and for codes without a text. */
    public final String detail;

    public Failure(String code, String host, int status, String detail) {
        this.code = code;
        this.host = host;
        this.status = status;
        this.detail = detail;
    }

    /** Returns a failure on the phone. */
    public static Failure here(String code, Exception e) {
        return new Failure(code, "", 0, e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage());
    }

    /** Parses an object with the fields of the daemon's "failed", and those of {@link #toJson}. */
    public static Failure parse(JSONObject o) {
        return new Failure(o.optString("code"), o.optString("host"), o.optInt("status"), o.optString("error"));
    }

    public JSONObject toJson() throws JSONException {
        return new JSONObject().put("code", code).put("host", host).put("status", status).put("error", detail);
    }
}
