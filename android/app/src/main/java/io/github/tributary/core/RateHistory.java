package io.github.tributary.core;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The rate of each network during the last minute. Owned by one thread. */
public final class RateHistory {
    /** The number of points that {@link #points} returns for each network, a second apart. */
    public static final int SECONDS = 60;

    private static final long FRESH_MILLIS = 2_500; // the daemon reports each second while data moves

    private static final class Sample {
        final long at;
        final Map<Net.Kind, Long> rates;

        Sample(long at, Map<Net.Kind, Long> rates) {
            this.at = at;
            this.rates = rates;
        }
    }

    private final Deque<Sample> samples = new ArrayDeque<Sample>(); // the oldest first

    /** Adds the rates of all networks at a time, in bytes per second. The time must not go back. */
    public void add(long nowMillis, List<LinkRow> rows) {
        Map<Net.Kind, Long> rates = new LinkedHashMap<Net.Kind, Long>();
        for (LinkRow row : rows) {
            if (row.link != null) {
                Long other = rates.get(row.net.kind);
                rates.put(row.net.kind, row.link.goodput + (other == null ? 0 : other));
            }
        }
        samples.add(new Sample(nowMillis, rates));
        while (samples.getFirst().at < nowMillis - SECONDS * 1000L - FRESH_MILLIS) {
            samples.removeFirst();
        }
    }

    /** Returns the rate of each kind of network in bytes per second; empty if the last report is too old. */
    public Map<Net.Kind, Long> now(long nowMillis) {
        return at(nowMillis, new ArrayList<Sample>(samples));
    }

    /** Returns {@link #SECONDS} rates for each kind of network, the last one now, in bytes per second. */
    public Map<Net.Kind, long[]> points(long nowMillis) {
        List<Sample> all = new ArrayList<Sample>(samples);
        Map<Net.Kind, long[]> points = new LinkedHashMap<Net.Kind, long[]>();
        for (int i = 0; i < SECONDS; i++) {
            for (Map.Entry<Net.Kind, Long> e : at(nowMillis - (SECONDS - 1 - i) * 1000L, all).entrySet()) {
                long[] line = points.get(e.getKey());
                if (line == null) {
                    line = new long[SECONDS];
                    points.put(e.getKey(), line);
                }
                line[i] = e.getValue();
            }
        }
        return points;
    }

    private static Map<Net.Kind, Long> at(long millis, List<Sample> all) {
        for (int i = all.size() - 1; i >= 0; i--) {
            Sample s = all.get(i);
            if (s.at <= millis) {
                return millis - s.at <= FRESH_MILLIS ? s.rates : Collections.<Net.Kind, Long>emptyMap();
            }
        }
        return Collections.emptyMap();
    }
}
