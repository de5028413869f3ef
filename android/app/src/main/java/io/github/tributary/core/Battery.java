package io.github.tributary.core;

/** A reading of the battery. A value; unknown fields are {@link #UNKNOWN}. */
public final class Battery {
    public static final int UNKNOWN = Integer.MIN_VALUE;

    /** The charge in percent, 0 to 100. */
    public final int percent;

    /** On a charger, full or not: what the phone draws is then unknown. */
    public final boolean charging;

    /** The current out of the battery in µA, above 0; always unknown while it charges. */
    public final int microamps;

    /** The remaining charge in µAh. */
    public final int microampHours;

    public final int millivolts;

    /** The temperature in tenths of a degree Celsius. */
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
