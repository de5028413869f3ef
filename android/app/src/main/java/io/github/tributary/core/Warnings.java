package io.github.tributary.core;

import java.util.LinkedHashMap;
import java.util.Map;

/** Finds the limits that are nearly used up. */
public final class Warnings {
    private static final int PERCENT = 80;

    private Warnings() {}

    /**
     * Returns the limits of which 80 % or more are used, by names that differ from month to month and day to day.
     * today: "2026-11-23".
     */
    public static Map<String, Status.Quota> due(Status s, String today) {
        Map<String, Status.Quota> due = new LinkedHashMap<String, Status.Quota>();
        for (Status.Account a : s.accounts) {
            if (a.since.isEmpty()) {
                continue; // the amount spent is not known yet
            }
            if (near(a.monthly)) {
                due.put(a.name + " month " + a.since, a.monthly);
            }
            if (near(a.daily)) {
                due.put(a.name + " day " + today, a.daily);
            }
        }
        return due;
    }

    private static boolean near(Status.Quota q) {
        return q != null && q.limit - q.left >= q.limit / 100 * PERCENT;
    }
}
