package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import org.junit.Test;

/** Why there is no mobile data: each reason on its own, and which one counts if there are several. */
public class MobileRowTest {
    private static final MobilePolicy HELPS = new MobilePolicy(MobilePolicy.Mode.MOBILE_HELPS, true, false, new Limits(0, 0, 1));
    private static final MobilePolicy WIFI_ONLY = new MobilePolicy(MobilePolicy.Mode.WIFI_ONLY, true, false, new Limits(0, 0, 1));
    private static final MobileRow.Phone GOOD = new MobileRow.Phone(true, true, false, true);

    private static Offer offer(Net.Kind... kinds) {
        Net[] nets = new Net[kinds.length];
        for (int i = 0; i < kinds.length; i++) {
            nets[i] = new Net(i, "n" + i, kinds[i], Collections.<String>emptyList(), Collections.<String>emptyList(), "", 1, EnumSet.noneOf(Net.Trait.class));
        }
        List<Net> all = Arrays.asList(nets);
        return new Offer(all, HELPS, false, false, Collections.<String>emptySet());
    }

    private static MobileRow row(MobilePolicy policy, MobileRow.Phone phone, boolean saving, boolean spent, long asked) {
        return MobileRow.of(offer(Net.Kind.WIFI), policy, phone, saving, spent, asked, 100_000);
    }

    @Test
    public void eachReason() {
        assertEquals(MobileRow.READY, row(HELPS, GOOD, false, false, 0));
        assertEquals(MobileRow.COMING, row(HELPS, GOOD, false, false, 90_000));
        assertEquals(MobileRow.NOT_COMING, row(HELPS, GOOD, false, false, 80_000));
        assertEquals(MobileRow.NOT_WANTED, row(WIFI_ONLY, GOOD, false, false, 0));
        assertEquals(MobileRow.NO_SIM, row(HELPS, new MobileRow.Phone(true, false, false, true), false, false, 0));
        assertEquals(MobileRow.AIRPLANE, row(HELPS, new MobileRow.Phone(true, false, true, true), false, false, 0));
        assertEquals(MobileRow.OFF, row(HELPS, new MobileRow.Phone(true, true, false, false), false, false, 80_000));
        assertEquals(MobileRow.DATA_SAVER, row(HELPS, GOOD, true, false, 0));
        assertEquals(MobileRow.SPENT, row(HELPS, GOOD, false, true, 0));
        assertEquals("a tablet without a modem", MobileRow.NONE, row(HELPS, new MobileRow.Phone(false, false, false, true), false, false, 0));
    }

    private static MobileRow resting(boolean spent, Net... present) {
        Offer offer = new Offer(Arrays.asList(present), HELPS, false, true, Collections.<String>emptySet());
        return MobileRow.of(offer, HELPS, GOOD, false, spent, 0, 100_000);
    }

    @Test
    public void batterySaverIsAReasonWhileWifiWorks() {
        Net wifi =
                new Net(1, "wlan0", Net.Kind.WIFI, Arrays.asList("10.0.0.2/24"), Collections.<String>emptyList(), "", 1, EnumSet.of(Net.Trait.VALIDATED));
        assertEquals(MobileRow.BATTERY_SAVER, resting(false, wifi));
        assertEquals(MobileRow.SPENT, resting(true, wifi));
        assertEquals(MobileRow.READY, resting(false));
    }

    @Test
    public void aNetworkHasARowOfItsOwn() {
        assertEquals(MobileRow.NONE, MobileRow.of(offer(Net.Kind.WIFI, Net.Kind.CELLULAR), HELPS, GOOD, false, false, 1, 100_000));
    }
}
