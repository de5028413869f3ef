package io.github.tributary.core;

/**
 * What a phone uses for a download: all of it, the screen included, since a phone does not tell whose use it is, from its beginning until
 * its radios rest again. Not safe for concurrent use.
 */
public final class BatteryMeter {
    private static final int UNKNOWN = Battery.UNKNOWN;

    /**
     * How long a radio of mobile data stays awake after its last byte: 11.2 to 11.6 s for LTE and 10.2 s for 5G on the phones that were
     * measured (internal/energy/devices).
     */
    public static final long MOBILE_TAIL_MILLIS = 12_000;

    /** The same for Wi-Fi: 0.21 s. It is more than one reading. */
    public static final long WIFI_TAIL_MILLIS = 1_000;

    private static final double JOULES_PER_MILLIWATT_HOUR = 3.6;

    /** The counter of many phones moves in coarse steps: fewer of them say less than the currents do. */
    private static final int STEPS = 4;

    private static final double MILLIS_PER_HOUR = 3_600_000;

    private Battery last;
    private long lastMillis;
    private boolean charged; // on the charger at some time
    private int steps; // of the counter
    private double counted; // µAh
    private double flowed; // µAh
    private long flowedMillis;
    private long millis; // that were metered
    private double voltMillis; // millivolts times milliseconds
    private double full = Double.NaN; // µAh of a full battery

    /** Takes in a reading at a time of a clock that only goes forward, once a second or so. */
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

    /** Leaves out the time until the next reading: the download pauses. */
    public void pause() {
        last = null;
    }

    /** mAh; NaN = it cannot be told, as always on a charger. */
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

    /** What was used so far. */
    public EnergyUse use() {
        return new EnergyUse(charged, joules(), percent());
    }

    /** Energy; NaN = it cannot be told. */
    double joules() {
        return millis == 0 || voltMillis == 0 ? Double.NaN : milliampHours() * voltMillis / millis / 1000 * JOULES_PER_MILLIWATT_HOUR;
    }

    /** Of a full battery; NaN = it cannot be told. */
    double percent() {
        return milliampHours() * 1000 / full * 100;
    }
}
