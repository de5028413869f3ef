package io.github.tributary.core;

/** A reading of the battery. A value; what is not known is {@link #UNKNOWN}. */
public final class Battery {
    public static final int UNKNOWN = Integer.MIN_VALUE;

    /** 0 to 100. */
    public final int percent;

    /** On a charger, full or not: what the phone draws cannot be told then. */
    public final boolean charging;

    /** µA out of the battery, above 0; never known while it charges. */
    public final int microamps;

    /** µAh that are left. */
    public final int microampHours;

    public final int millivolts;

    /** Tenths of a degree Celsius. */
    public final int decidegrees;

    Battery(int percent, boolean charging, int microamps, int microampHours, int millivolts, int decidegrees) {
        this.percent = percent;
        this.charging = charging;
        this.microamps = microamps;
        this.microampHours = microampHours;
        this.millivolts = millivolts;
        this.decidegrees = decidegrees;
    }
}
