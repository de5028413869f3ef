package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.Test;

/** Which of the networks present are offered to the daemon. */
public class NetworksTest {
    private static final List<String> NONE = Collections.emptyList();

    private static List<String> names(List<Net> all) {
        List<String> names = new ArrayList<String>();
        for (Net n : all) {
            names.add(n.name);
        }
        return names;
    }

    private static Set<Net.Trait> traits(Net.Trait... all) {
        return new HashSet<Net.Trait>(Arrays.asList(all));
    }

    @Test
    public void callbacksInAnyOrder() {
        for (long seed = 0; seed < 200; seed++) {
            NetworkTable table = new NetworkTable();
            List<Runnable> calls = new ArrayList<Runnable>();
            calls.add(() -> table.capabilities(1, Net.Kind.WIFI, Net.NO_SIM, traits(Net.Trait.VALIDATED)));
            calls.add(() -> table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false));
            calls.add(() -> table.capabilities(2, Net.Kind.CELLULAR, Net.NO_SIM, traits(Net.Trait.METERED, Net.Trait.VALIDATED)));
            calls.add(() -> table.properties(2, "rmnet0", Arrays.asList("10.0.0.2/32"), NONE, "", false));
            calls.add(() -> table.lost(3));
            calls.add(() -> table.capabilities(3, Net.Kind.WIFI, Net.NO_SIM, traits(Net.Trait.VALIDATED)));
            calls.add(() -> table.properties(3, "wlan1", Arrays.asList("192.168.2.2/24"), NONE, "", false));
            Collections.shuffle(calls, new Random(seed));
            for (Runnable r : calls) {
                r.run();
            }
            assertEquals("seed " + seed, Arrays.asList("wlan0", "rmnet0"), names(table.snapshot()));
        }
    }

    @Test
    public void halfKnownIsNotShown() {
        NetworkTable table = new NetworkTable();
        table.capabilities(1, Net.Kind.WIFI, Net.NO_SIM, traits(Net.Trait.VALIDATED));
        assertEquals(NONE, names(table.snapshot()));
        table.properties(1, null, NONE, NONE, "", false);
        assertEquals(NONE, names(table.snapshot()));
        table.properties(1, "wlan0", NONE, NONE, "", false);
        assertEquals(Arrays.asList("wlan0"), names(table.snapshot()));
        assertEquals("without an address", NONE, names(new Offer(table.snapshot(), new MobilePolicy(MobilePolicy.Mode.MOBILE_HELPS, true, false, Limits.NONE), false, false, new HashSet<String>()).offered()));
    }

    @Test
    public void whatIsLostIsBelievedWhenItIsThereAgain() {
        NetworkTable table = new NetworkTable();
        table.capabilities(1, Net.Kind.WIFI, Net.NO_SIM, traits(Net.Trait.VALIDATED));
        table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false);
        table.lost(1);
        table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false);
        table.capabilities(1, Net.Kind.WIFI, Net.NO_SIM, traits(Net.Trait.VALIDATED));
        assertEquals(NONE, names(table.snapshot()));
        table.available(1);
        table.capabilities(1, Net.Kind.WIFI, Net.NO_SIM, traits(Net.Trait.VALIDATED));
        assertEquals("half of it is from before", NONE, names(table.snapshot()));
        table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false);
        assertEquals(Arrays.asList("wlan0"), names(table.snapshot()));
    }

    @Test
    public void aNetworkThatNamesOurProxyCountsAsLeadingOut() {
        for (boolean captive : new boolean[] {false, true}) {
            for (boolean ours : new boolean[] {false, true}) {
                NetworkTable table = new NetworkTable();
                table.capabilities(1, Net.Kind.WIFI, Net.NO_SIM, captive ? traits(Net.Trait.CAPTIVE) : traits());
                table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", ours);
                assertEquals(ours + " " + captive, ours && !captive, table.snapshot().get(0).usable());
            }
        }
    }

    @Test
    public void theSystemsChoiceAndRefusalsAreKept() {
        NetworkTable table = new NetworkTable();
        table.blocked(1, true);
        table.capabilities(1, Net.Kind.CELLULAR, 4, traits(Net.Trait.METERED, Net.Trait.ROAMING, Net.Trait.VALIDATED));
        table.properties(1, "rmnet0", Arrays.asList("10.0.0.2/32"), NONE, "", false);
        table.capabilities(2, Net.Kind.WIFI, Net.NO_SIM, traits());
        table.properties(2, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false);
        table.byDefault(2L);
        Net wifi = table.snapshot().get(0);
        Net mobile = table.snapshot().get(1);
        assertEquals("wlan0 rmnet0", wifi.name + " " + mobile.name);
        assertTrue(mobile.is(Net.Trait.BLOCKED) && mobile.is(Net.Trait.ROAMING) && mobile.is(Net.Trait.METERED) && !mobile.is(Net.Trait.DEFAULT));
        assertEquals("cellular-4", mobile.account());
        assertTrue(wifi.is(Net.Trait.DEFAULT) && !wifi.is(Net.Trait.BLOCKED));
        table.blocked(1, false);
        table.byDefault(null);
        assertFalse(table.snapshot().get(1).is(Net.Trait.BLOCKED) || table.snapshot().get(0).is(Net.Trait.DEFAULT));
    }
}
