package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** What to download, and how to ask its server for it. A value. */
public final class Source {
    private static final int LONGEST = 16_384; // characters of all fields: servers take less

    public final String url;

    /** The checksum that the file must have, like "sha256:HEX"; "" = any. */
    public final String checksum;

    /**
     * Fields of the requests, like "Referer: https://example.com/". They may be secret and appear in no log and on no
     * screen.
     */
    public final List<String> header;

    private Source(String url, String checksum, List<String> header) {
        this.url = url;
        this.checksum = checksum;
        this.header = header;
    }

    public static Source of(String url) {
        return new Source(url, "", Collections.<String>emptyList());
    }

    /** Returns the same with a required checksum. */
    Source verified(String checksum) {
        return new Source(url, checksum, header);
    }

    /**
     * Returns the same with another field in its requests. The field is left out if its value is empty, contains
     * characters that no field can hold, or makes the fields too long.
     */
    public Source with(String name, String value) {
        int length = name.length();
        for (String line : header) {
            length += line.length();
        }
        if (value == null || value.trim().isEmpty() || !plain(value) || length + value.length() > LONGEST) {
            return this;
        }
        List<String> more = new ArrayList<String>(header);
        more.add(name + ": " + value.trim());
        return new Source(url, checksum, Collections.unmodifiableList(more));
    }

    private static boolean plain(String value) {
        for (int i = 0; i < value.length(); i++) {
            if (value.charAt(i) < ' ' || value.charAt(i) > '~') {
                return false;
            }
        }
        return true;
    }

    /** Writes everything except the URL to an object, as in the daemon's order. */
    void write(JSONObject o) throws JSONException {
        if (!checksum.isEmpty()) {
            o.put("checksum", checksum);
        }
        if (!header.isEmpty()) {
            o.put("header", new JSONArray(header));
        }
    }

    /** Parses an object with a URL and what {@link #write} wrote. */
    static Source parse(JSONObject o) throws JSONException {
        List<String> header = new ArrayList<String>();
        JSONArray lines = o.optJSONArray("header");
        for (int i = 0; lines != null && i < lines.length(); i++) {
            header.add(lines.getString(i));
        }
        return new Source(o.getString("url"), o.optString("checksum"), Collections.unmodifiableList(header));
    }
}
