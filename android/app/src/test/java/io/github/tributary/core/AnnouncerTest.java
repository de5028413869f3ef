package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** The proxy is announced to apps while it listens, and no longer. */
public class AnnouncerTest {
    private final FakeSystem system = new FakeSystem();
    private int bridges;

    private final Announcer announcer =
            new Announcer(
                    new GlobalProxy("ours", system, system),
                    new Announcer.Bridge() {
                        @Override
                        public void open() {
                            bridges++;
                        }

                        @Override
                        public void close() {
                            bridges--;
                        }
                    });

    private void now(boolean listens, Reach reach, String wantSetting, int wantBridges) {
        announcer.update(listens, true, reach);
        assertEquals(wantSetting, system.setting);
        assertEquals(wantBridges, bridges);
    }

    @Test
    public void tellsWhileItListens() {
        now(false, Reach.SETTING, "", 0);
        now(true, Reach.SETTING, "ours", 0);
        now(true, Reach.SETTING, "ours", 0);
        now(false, Reach.SETTING, ":0", 0);
        now(true, Reach.VPN, ":0", 1);
        now(true, Reach.VPN, ":0", 1);
        now(false, Reach.VPN, ":0", 0);
        now(true, Reach.VPN, ":0", 1);
        now(true, Reach.SETTING, "ours", 0);
        now(true, Reach.VPN, ":0", 1);
        now(true, Reach.BY_HAND, ":0", 0);
    }

    @Test
    public void theSettingWaitsForANetwork() {
        announcer.update(true, false, Reach.SETTING);
        assertEquals("", system.setting);
        announcer.update(true, true, Reach.SETTING);
        assertEquals("ours", system.setting);
        announcer.update(true, false, Reach.SETTING);
        assertEquals(":0", system.setting);
        announcer.update(true, false, Reach.VPN);
        assertEquals("a VPN may stay", 1, bridges);
    }

    @Test
    public void saysThatItMayNot() {
        system.forbidden = true;
        announcer.update(true, true, Reach.SETTING);
        assertTrue(announcer.refused());
        announcer.update(true, true, Reach.BY_HAND);
        assertFalse(announcer.refused());
        system.forbidden = false;
        announcer.update(true, true, Reach.SETTING);
        assertFalse(announcer.refused());
        assertEquals("ours", system.setting);
    }
}
