package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

/** The values that phones report about their batteries. */
public class BatteryScaleTest {
    private static final int UNKNOWN = Battery.UNKNOWN;
    private static final long MISSING = Long.MIN_VALUE;

    private static int after(long... currents) {
        BatteryScale scale = new BatteryScale();
        int last = UNKNOWN;
        for (long c : currents) {
            last = scale.read(80, false, c, MISSING, 4000, 250).microamps;
        }
        return last;
    }

    private static int charge(int percent, long charge) {
        return new BatteryScale().read(percent, false, MISSING, charge, 4000, 250).microampHours;
    }

    private static int volts(int voltage) {
        return new BatteryScale().read(80, false, MISSING, MISSING, voltage, 250).millivolts;
    }

    @Test
    public void currents() {
        assertEquals("by contract", 350_000, after(-350_000));
        assertEquals("turned", 350_000, after(350_000));
        assertEquals("mA, not sure yet", UNKNOWN, after(-350));
        assertEquals("mA", 350_000, after(-350, -340, -350, -360, -350));
        assertEquals("a moment's sleep of a phone that says µA", 976, after(-976, -350_000, -976));
        assertEquals("neither", UNKNOWN, after(-15_000, -15_000, -15_000, -15_000, -15_000, -15_000));
        assertEquals("a broken driver", UNKNOWN, after(0, 0, 0, 0, 0, 0));
        assertEquals("not there", UNKNOWN, after(MISSING));
        assertEquals("not there", UNKNOWN, after(Integer.MIN_VALUE));
        assertEquals("on a charger", UNKNOWN, new BatteryScale().read(80, true, 900_000, MISSING, 4000, 250).microamps);
    }

    @Test
    public void charges() {
        assertEquals("by contract", 3_000_000, charge(60, 3_000_000));
        assertEquals("mAh", 3_000_000, charge(60, 3_000));
        assertEquals("nearly empty", 40_000, charge(1, 40_000));
        assertEquals("of a battery that does not exist", UNKNOWN, charge(50, 18_398_000));
        assertEquals(UNKNOWN, charge(60, 0));
        assertEquals(UNKNOWN, charge(60, MISSING));
        assertEquals(UNKNOWN, charge(0, 3_000));
        assertEquals(UNKNOWN, charge(-1, 3_000_000));
    }

    @Test
    public void voltages() {
        assertEquals(3900, volts(3900));
        assertEquals("in µV", 3900, volts(3_900_000));
        assertEquals("in V", UNKNOWN, volts(4));
        assertEquals(UNKNOWN, volts(0));
    }
}
