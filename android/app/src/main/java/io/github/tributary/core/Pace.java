package io.github.tributary.core;

import java.util.ArrayDeque;
import java.util.Deque;

/** The rate of one download, from the bytes that it has at some times. Owned by one thread. */
public final class Pace {
    private static final long WINDOW_MILLIS = 5_000;
    private static final long LEAST_MILLIS = 500; // or two reports close together would show any rate

    private final Deque<long[]> seen = new ArrayDeque<long[]>(); // {time, bytes}, the oldest first

    /** Takes in how many bytes there are at a time. Fewer than before, or a stop, begin a new measurement: see {@link #reset}. */
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
        long millis = nowMillis - first[0]; // not to the last report: a download that stalls becomes slower
        return millis < LEAST_MILLIS ? -1 : (seen.getLast()[1] - first[1]) * 1000 / millis;
    }

    /** Returns the seconds until a size is reached; -1 = not known. */
    public long secondsLeft(long nowMillis, long size) {
        long rate = rate(nowMillis);
        return size < 0 || rate <= 0 ? -1 : (size - seen.getLast()[1] + rate - 1) / rate;
    }
}
