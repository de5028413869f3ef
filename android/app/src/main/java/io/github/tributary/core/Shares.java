package io.github.tributary.core;

import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import org.json.JSONException;
import org.json.JSONObject;

/** How many bytes each kind of network brought. A value. */
public final class Shares {
    public static final Shares NONE = new Shares(Collections.<Net.Kind, Long>emptyMap());

    private final Map<Net.Kind, Long> bytes;

    private Shares(Map<Net.Kind, Long> bytes) {
        this.bytes = Collections.unmodifiableMap(bytes);
    }

    /** Returns the same with more bytes of a kind. */
    public Shares plus(Net.Kind kind, long more) {
        Map<Net.Kind, Long> sum = new EnumMap<Net.Kind, Long>(Net.Kind.class);
        sum.putAll(bytes);
        sum.put(kind, of(kind) + more);
        return new Shares(sum);
    }

    public Shares plus(Shares other) {
        Shares sum = this;
        for (Map.Entry<Net.Kind, Long> e : other.bytes.entrySet()) {
            sum = sum.plus(e.getKey(), e.getValue());
        }
        return sum;
    }

    /** Returns the bytes of a kind. */
    public long of(Net.Kind kind) {
        Long n = bytes.get(kind);
        return n == null ? 0 : n;
    }

    public long total() {
        long sum = 0;
        for (long n : bytes.values()) {
            sum += n;
        }
        return sum;
    }

    /** Returns the share in percent of each kind that brought something; together they are 100. */
    public Map<Net.Kind, Integer> percent() {
        Map<Net.Kind, Integer> percent = new EnumMap<Net.Kind, Integer>(Net.Kind.class);
        long total = total();
        long so = 0;
        int given = 0;
        for (Map.Entry<Net.Kind, Long> e : bytes.entrySet()) {
            if (e.getValue() > 0) {
                so += e.getValue();
                int upTo = (int) ((so * 100 + total / 2) / total); // rounded sums, so that the parts add up
                percent.put(e.getKey(), upTo - given);
                given = upTo;
            }
        }
        return percent;
    }

    JSONObject toJson() throws JSONException {
        JSONObject o = new JSONObject();
        for (Map.Entry<Net.Kind, Long> e : bytes.entrySet()) {
            o.put(e.getKey().word, e.getValue());
        }
        return o;
    }

    /** Parses what {@link #toJson} wrote. */
    static Shares parse(JSONObject o) {
        Shares s = NONE;
        for (Net.Kind kind : Net.Kind.values()) {
            long n = o == null ? 0 : o.optLong(kind.word);
            s = n > 0 ? s.plus(kind, n) : s;
        }
        return s;
    }
}
