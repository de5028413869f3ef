package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** What the phone used while a download ran. */
public class BatteryMeterTest {
    private static final int UNKNOWN = Battery.UNKNOWN;

    private final BatteryMeter meter = new BatteryMeter();
    private long now = 77;

    private void add(int current, int charge) {
        meter.add(new Battery(80, false, current, charge, 4000, 250), now);
        now += 1000;
    }

    @Test
    public void sumsCurrents() {
        for (int i = 0; i <= 36; i++) { // 36 s at 400 mA
            add(400_000, UNKNOWN);
        }
        assertEquals(4, meter.milliampHours(), 1e-9);
        assertEquals("16 mWh", 57.6, meter.joules(), 1e-9);
        assertTrue("a full battery is not known", Double.isNaN(meter.percent()));
    }

    @Test
    public void prefersACounterThatMoves() {
        for (int i = 0; i <= 36; i++) {
            add(1_000_000, 4_000_000 - 100 * i); // 3.6 mAh of 5,000
        }
        assertEquals(3.6, meter.milliampHours(), 1e-9);
        assertEquals(0.072, meter.percent(), 1e-4);
    }

    @Test
    public void doesNotTrustACounterThatJumps() {
        for (int i = 0; i <= 36; i++) {
            add(400_000, i < 30 ? 4_000_000 : 3_950_000); // a step of 1 %
        }
        assertEquals(4, meter.milliampHours(), 1e-9);
        assertEquals(0.08, meter.percent(), 2e-3);
    }

    @Test
    public void pausesDoNotCount() {
        add(400_000, UNKNOWN);
        add(400_000, UNKNOWN);
        double used = meter.milliampHours();
        meter.pause();
        now += 3_600_000;
        add(400_000, UNKNOWN);
        assertEquals(used, meter.milliampHours(), 1e-9);
    }

    @Test
    public void nothingIsToldOnACharger() {
        add(400_000, 4_000_000);
        meter.add(new Battery(80, true, UNKNOWN, 4_000_000, 4000, 250), now);
        now += 1000;
        assertTrue(meter.use().charged);
        for (int i = 1; i < 30; i++) { // after that it would be known
            add(400_000, 3_900_000 - i);
        }
        assertTrue(Double.isNaN(meter.milliampHours()));
        assertTrue(Double.isNaN(meter.joules()));
        assertTrue(Double.isNaN(meter.percent()));
        assertTrue("nothing was read", Double.isNaN(new BatteryMeter().joules()));
    }
}
