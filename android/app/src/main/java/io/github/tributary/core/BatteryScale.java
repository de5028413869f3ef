package io.github.tributary.core;

/**
 * Converts the values that phones report to readings. By the contract of Android's BatteryManager, currents are in µA,
 * negative while the battery discharges, and charges are in µAh; some phones report mA or mAh, some invert the sign,
 * some report volts. A scale serves one phone, since it learns the phone's units. Not safe for concurrent use.
 */
public final class BatteryScale {
    /**
     * A phone in use draws more than 20 mA and less than 10 A, so 20,000 or more are µA, and 10,000 or fewer are mA.
     */
    private static final long LEAST_MICROAMPS = 20_000;

    private static final long MOST_MILLIAMPS = 10_000;
    private static final long LEAST_MILLIAMPS = 20;

    /** This many currents are needed to judge the unit: a single one may come from a moment of sleep. */
    private static final int ENOUGH = 5;

    /** Batteries of phones and tablets hold 500 to 30,000 mAh. */
    private static final long LEAST_FULL = 500;

    private static final long MOST_FULL = 30_000;

    private long most; // highest of the currents while it discharged
    private int seen;

    /** Converts a reading; Integer.MIN_VALUE and Long.MIN_VALUE stand for values that a phone does not report. */
    public Battery read(int percent, boolean charging, long current, long charge, int voltage, int decidegrees) {
        int known = percent >= 0 && percent <= 100 ? percent : Battery.UNKNOWN;
        return new Battery(known, charging, microamps(charging, current), microampHours(known, charge), millivolts(voltage), decidegrees);
    }

    private int microamps(boolean charging, long current) {
        if (charging || current == 0 || current <= Integer.MIN_VALUE || current > Integer.MAX_VALUE) {
            return Battery.UNKNOWN;
        }
        long v = Math.abs(current);
        most = Math.max(most, v);
        seen++;
        if (most >= LEAST_MICROAMPS) {
            return (int) v;
        }
        boolean milli = seen >= ENOUGH && most >= LEAST_MILLIAMPS && most <= MOST_MILLIAMPS;
        return milli ? (int) (v * 1000) : Battery.UNKNOWN;
    }

    private static int microampHours(int percent, long charge) {
        if (percent <= 0 || charge <= 0 || charge > Integer.MAX_VALUE) {
            return Battery.UNKNOWN;
        }
        long full = charge * 100 / percent;
        if (full >= LEAST_FULL * 1000 && full <= MOST_FULL * 1000) {
            return (int) charge;
        }
        return full >= LEAST_FULL && full <= MOST_FULL ? (int) (charge * 1000) : Battery.UNKNOWN;
    }

    private static int millivolts(int voltage) {
        if (voltage >= 1_000_000) {
            return voltage / 1000;
        }
        return voltage >= 1000 && voltage <= 20_000 ? voltage : Battery.UNKNOWN; // whole volts are too coarse
    }
}
