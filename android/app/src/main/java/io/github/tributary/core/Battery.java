package io.github.tributary.core;

/** A reading of the battery. A value; what is not known is {@link #UNKNOWN}. */
public final class Battery {
    /** What a phone says of a property that it has not. */
    public static final int UNKNOWN = Integer.MIN_VALUE;

    /** No phone draws more, in mA, or, while it downloads, less, in µA: it tells the unit of a current. */
    private static final int MOST_MILLIAMPS = 10_000;

    /** No phone's battery holds more, in mAh, or, unless nearly empty, less, in µAh. */
    private static final int MOST_MILLIAMP_HOURS = 50_000;

    /** 0 to 100, or UNKNOWN. */
    public final int percent;

    /** On a charger, full or not: what it draws cannot be told then. */
    public final boolean charging;

    /** µA out of the battery, above 0; UNKNOWN while it charges. */
    public final int microamps;

    /** µAh that are left. */
    public final int microampHours;

    public final int millivolts;

    /** Tenths of a degree Celsius. */
    public final int decidegrees;

    /**
     * A reading as phones give it. The contract of Android's BatteryManager is µA, below 0 while the battery discharges, and
     * µAh; some phones say mA and mAh, some turn the sign.
     */
    public Battery(int percent, boolean charging, int current, int charge, int millivolts, int decidegrees) {
        this.percent = percent;
        this.charging = charging;
        this.microamps = charging || current == UNKNOWN || current == 0 ? UNKNOWN : micro(current, MOST_MILLIAMPS);
        this.microampHours = charge == UNKNOWN || charge <= 0 ? UNKNOWN : micro(charge, MOST_MILLIAMP_HOURS);
        this.millivolts = millivolts > 0 ? millivolts : UNKNOWN;
        this.decidegrees = decidegrees;
    }

    private static int micro(int value, int most) {
        int v = Math.abs(value);
        return v <= most ? v * 1000 : v;
    }
}
