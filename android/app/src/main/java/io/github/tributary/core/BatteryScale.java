package io.github.tributary.core;

/**
 * Makes readings of what phones say. By the contract of Android's BatteryManager currents are µA, below 0 while the battery
 * discharges, and charges µAh; some phones say mA or mAh, some turn the sign, some give volts. One scale serves one phone: it
 * learns. Not safe for concurrent use.
 */
public final class BatteryScale {
    /** A phone in use draws more than 20 mA and less than 10 A, so 20,000 of them are µA, and fewer than 10,000 are mA. */
    private static final long LEAST_MICROAMPS = 20_000;

    private static final long MOST_MILLIAMPS = 10_000;
    private static final long LEAST_MILLIAMPS = 20;

    /** So many currents tell: one alone may be that of a moment's sleep. */
    private static final int ENOUGH = 5;

    /** Batteries of phones and tablets hold 500 to 30,000 mAh. */
    private static final long LEAST_FULL = 500;

    private static final long MOST_FULL = 30_000;

    private long most; // of the currents while it discharged
    private int seen;

    /** A reading; Integer.MIN_VALUE and Long.MIN_VALUE stand for what a phone has not. */
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
        return voltage >= 1000 && voltage <= 20_000 ? voltage : Battery.UNKNOWN; // whole volts say too little
    }
}
