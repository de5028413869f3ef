package io.github.tributary.core;

/**
 * Measures what a phone uses for a download, from its start until the radios rest again. It counts the whole phone,
 * screen included, since a phone does not report use by app. Not safe for concurrent use.
 */
public final class BatteryMeter {
    private static final int UNKNOWN = Battery.UNKNOWN;

    /**
     * How long a mobile data radio stays awake after its last byte: 11.2 to 11.6 s for LTE and 10.2 s for 5G on the
     * measured phones (internal/core/energy/devices).
     */
    public static final long MOBILE_TAIL_MILLIS = 12_000;

    /** The same for Wi-Fi, which takes 0.21 s. The value is longer to cover a reading. */
    public static final long WIFI_TAIL_MILLIS = 1_000;

    private static final double JOULES_PER_MILLIWATT_HOUR = 3.6;

    /**
     * The charge counter of many phones moves in coarse steps: with fewer steps than this, the currents are more
     * accurate.
     */
    private static final int STEPS = 4;

    private static final double MILLIS_PER_HOUR = 3_600_000;

    private Battery last;
    private long lastMillis;
    private boolean charged; // was on the charger at some time
    private int steps; // steps of the charge counter
    private double counted; // µAh
    private double flowed; // µAh
    private long flowedMillis;
    private long millis; // metered time
    private double voltMillis; // millivolts times milliseconds
    private double full = Double.NaN; // µAh of a full battery

    /** Adds a reading, about once a second. The time must come from a monotonic clock. */
    public void add(Battery b, long nowMillis) {
        charged |= b.charging;
        if (b.microampHours != UNKNOWN && b.percent > 0) {
            full = b.microampHours * 100.0 / b.percent;
        }
        if (last != null) {
            long took = nowMillis - lastMillis;
            millis += took;
            if (b.microamps != UNKNOWN && last.microamps != UNKNOWN) {
                flowed += (b.microamps + (double) last.microamps) / 2 * took / MILLIS_PER_HOUR;
                flowedMillis += took;
            }
            if (b.millivolts != UNKNOWN) {
                voltMillis += (double) b.millivolts * took;
            }
            if (b.microampHours != UNKNOWN && last.microampHours != UNKNOWN && b.microampHours != last.microampHours) {
                steps++;
                counted += last.microampHours - b.microampHours;
            }
        }
        last = b;
        lastMillis = nowMillis;
    }

    /** Leaves out the time until the next reading, since the download pauses. */
    public void pause() {
        last = null;
    }

    /** Returns the charge used in mAh; NaN = unknown, as always on a charger. */
    double milliampHours() {
        if (charged) {
            return Double.NaN;
        }
        if (steps >= STEPS && counted > 0) {
            return counted / 1000;
        }
        if (flowedMillis > 0 && 2 * flowedMillis >= millis) {
            return flowed / 1000 * millis / flowedMillis;
        }
        return Double.NaN;
    }

    /** Returns what was used so far. */
    public EnergyUse use() {
        return new EnergyUse(charged, joules(), percent());
    }

    /** Returns the energy used in joules; NaN = unknown. */
    double joules() {
        return millis == 0 || voltMillis == 0 ? Double.NaN : milliampHours() * voltMillis / millis / 1000 * JOULES_PER_MILLIWATT_HOUR;
    }

    /** Returns the charge used in percent of a full battery; NaN = unknown. */
    double percent() {
        return milliampHours() * 1000 / full * 100;
    }
}
