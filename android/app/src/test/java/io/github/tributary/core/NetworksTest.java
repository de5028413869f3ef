package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.Test;

/** What of the networks there are is offered to the daemon. */
public class NetworksTest {
    private static final List<String> NONE = Collections.emptyList();

    private static List<String> names(List<Net> all) {
        List<String> names = new ArrayList<String>();
        for (Net n : all) {
            names.add(n.name);
        }
        return names;
    }

    private static Net net(long handle, String name, Net.Kind kind, boolean validated) {
        return new Net(handle, name, kind, Arrays.asList("10.0.0." + handle + "/24"), NONE, "", kind == Net.Kind.CELLULAR, validated);
    }

    @Test
    public void callbacksInAnyOrder() {
        for (long seed = 0; seed < 200; seed++) {
            NetworkTable table = new NetworkTable();
            List<Runnable> calls = new ArrayList<Runnable>();
            calls.add(() -> table.capabilities(1, Net.Kind.WIFI, false, true, false));
            calls.add(() -> table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false));
            calls.add(() -> table.capabilities(2, Net.Kind.CELLULAR, true, true, false));
            calls.add(() -> table.properties(2, "rmnet0", Arrays.asList("10.0.0.2/32"), NONE, "", false));
            calls.add(() -> table.lost(3));
            calls.add(() -> table.capabilities(3, Net.Kind.WIFI, false, true, false));
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
        table.capabilities(1, Net.Kind.WIFI, false, true, false);
        assertEquals(NONE, names(table.snapshot()));
        table.properties(1, null, NONE, NONE, "", false);
        assertEquals(NONE, names(table.snapshot()));
        table.properties(1, "wlan0", NONE, NONE, "", false);
        assertEquals(Arrays.asList("wlan0"), names(table.snapshot()));
        assertEquals("without an address", NONE, names(new MobilePolicy(MobilePolicy.Mode.MOBILE_HELPS, true, 0).offer(table.snapshot())));
    }

    @Test
    public void whatIsLostIsBelievedWhenItIsThereAgain() {
        NetworkTable table = new NetworkTable();
        table.capabilities(1, Net.Kind.WIFI, false, true, false);
        table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false);
        table.lost(1);
        table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false);
        table.capabilities(1, Net.Kind.WIFI, false, true, false);
        assertEquals(NONE, names(table.snapshot()));
        table.available(1);
        table.capabilities(1, Net.Kind.WIFI, false, true, false);
        assertEquals("half of it is from before", NONE, names(table.snapshot()));
        table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", false);
        assertEquals(Arrays.asList("wlan0"), names(table.snapshot()));
    }

    @Test
    public void aNetworkThatNamesOurProxyCountsAsLeadingOut() {
        for (boolean captive : new boolean[] {false, true}) {
            for (boolean ours : new boolean[] {false, true}) {
                NetworkTable table = new NetworkTable();
                table.capabilities(1, Net.Kind.WIFI, false, false, captive);
                table.properties(1, "wlan0", Arrays.asList("192.168.1.2/24"), NONE, "", ours);
                assertEquals(ours + " " + captive, ours && !captive, table.snapshot().get(0).validated);
            }
        }
    }

    @Test
    public void mobileDataOnlyAsAllowed() {
        List<Net> both = Arrays.asList(net(1, "wlan0", Net.Kind.WIFI, true), net(2, "rmnet0", Net.Kind.CELLULAR, true));
        List<Net> mobile = both.subList(1, 2);
        List<Net> login = Arrays.asList(net(1, "wlan0", Net.Kind.WIFI, false), both.get(1));
        List<Net> vpn = Arrays.asList(net(9, "tun0", Net.Kind.VPN, true), both.get(0), both.get(1));
        Object[][] rows = {
            // mode, consent, networks, offered
            {MobilePolicy.Mode.WIFI_ONLY, true, both, "[wlan0]"},
            {MobilePolicy.Mode.WIFI_ONLY, true, mobile, "[]"},
            {MobilePolicy.Mode.MOBILE_HELPS, true, both, "[wlan0, rmnet0]"},
            {MobilePolicy.Mode.MOBILE_HELPS, true, mobile, "[rmnet0]"},
            {MobilePolicy.Mode.MOBILE_HELPS, false, both, "[wlan0]"},
            {MobilePolicy.Mode.MOBILE_HELPS, false, mobile, "[]"},
            {MobilePolicy.Mode.MOBILE_BACKUP, true, both, "[wlan0]"},
            {MobilePolicy.Mode.MOBILE_BACKUP, true, mobile, "[rmnet0]"},
            {MobilePolicy.Mode.MOBILE_BACKUP, true, login, "[rmnet0]"},
            {MobilePolicy.Mode.MOBILE_BACKUP, false, mobile, "[]"},
            {MobilePolicy.Mode.MOBILE_HELPS, true, vpn, "[wlan0, rmnet0]"},
        };
        for (Object[] r : rows) {
            @SuppressWarnings("unchecked")
            List<Net> all = (List<Net>) r[2];
            MobilePolicy p = new MobilePolicy((MobilePolicy.Mode) r[0], (Boolean) r[1], 0);
            assertEquals(Arrays.toString(r), r[3], names(p.offer(all)).toString());
        }
    }

    @Test
    public void mobileDataIsAskedForOnlyWhileItHelps() {
        for (MobilePolicy.Mode mode : MobilePolicy.Mode.values()) {
            for (boolean consent : new boolean[] {false, true}) {
                for (boolean wanted : new boolean[] {false, true}) {
                    boolean want = mode == MobilePolicy.Mode.MOBILE_HELPS && consent && wanted;
                    assertEquals(mode + " " + consent + " " + wanted, want, new MobilePolicy(mode, consent, 0).request(wanted));
                }
            }
        }
    }
}
