package io.github.tributary.core;

/** How much each account may carry: each SIM, and everything else that costs money together. A value. */
public final class Limits {
    public static final Limits NONE = new Limits(0, 0, 1);

    /** Bytes in a month; 0 = no limit. */
    public final long monthlyBytes;

    /** Bytes in a day; 0 = no limit. */
    public final long dailyBytes;

    /** The day on which a month begins, 1 to 31. */
    public final int firstDay;

    public Limits(long monthlyBytes, long dailyBytes, int firstDay) {
        if (monthlyBytes < 0 || dailyBytes < 0 || firstDay < 1 || firstDay > 31) {
            throw new IllegalArgumentException(monthlyBytes + " bytes a month from day " + firstDay + ", " + dailyBytes + " a day");
        }
        this.monthlyBytes = monthlyBytes;
        this.dailyBytes = dailyBytes;
        this.firstDay = firstDay;
    }
}
