package io.github.tributary.core;

import java.util.ArrayDeque;
import java.util.Deque;

/** The rate of one download, from its byte counts over time. Owned by one thread. */
public final class Pace {
    private static final long WINDOW_MILLIS = 5_000;
    private static final long LEAST_MILLIS = 500; // otherwise two reports close together could show any rate

    private final Deque<long[]> seen = new ArrayDeque<long[]>(); // {time, bytes}, the oldest first

    /**
     * Adds the number of bytes at a time. Fewer than before, or a pause, start a new measurement: see {@link #reset}.
     */
    public void add(long nowMillis, long bytes) {
        if (!seen.isEmpty() && bytes < seen.getLast()[1]) {
            seen.clear();
        }
        seen.add(new long[] {nowMillis, bytes});
        while (seen.size() > 2 && seen.getFirst()[0] < nowMillis - WINDOW_MILLIS) {
            seen.removeFirst();
        }
    }

    public void reset() {
        seen.clear();
    }

    /** Returns bytes per second over the last seconds; -1 = not known yet. */
    public long rate(long nowMillis) {
        if (seen.size() < 2) {
            return -1;
        }
        long[] first = seen.getFirst();
        long millis = nowMillis - first[0]; // not to the last report: the rate of a stalled download falls
        return millis < LEAST_MILLIS ? -1 : (seen.getLast()[1] - first[1]) * 1000 / millis;
    }

    /** Returns the seconds until a size is reached; -1 = not known. */
    public long secondsLeft(long nowMillis, long size) {
        long rate = rate(nowMillis);
        return size < 0 || rate <= 0 ? -1 : (size - seen.getLast()[1] + rate - 1) / rate;
    }
}
