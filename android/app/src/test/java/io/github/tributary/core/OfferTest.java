package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;

import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.Test;

/** Nothing is spent that the user has not allowed. */
public class OfferTest {
    private static final Set<String> NONE = Collections.emptySet();
    private static final MobilePolicy.Mode WIFI_ONLY = MobilePolicy.Mode.WIFI_ONLY;
    private static final MobilePolicy.Mode HELPS = MobilePolicy.Mode.MOBILE_HELPS;
    private static final MobilePolicy.Mode BACKUP = MobilePolicy.Mode.MOBILE_BACKUP;

    /**
     * Returns a network that leads to the internet and has these traits as well; "-" in its name = it does not lead
     * there.
     */
    private static Net net(String name, Net.Kind kind, Net.Trait... traits) {
        Set<Net.Trait> all = EnumSet.noneOf(Net.Trait.class);
        all.addAll(Arrays.asList(traits));
        if (!name.contains("-")) {
            all.add(Net.Trait.VALIDATED);
        }
        return new Net(name.hashCode(), name, kind, Arrays.asList("10.0.0.2/24"), Collections.<String>emptyList(), "", 1, all);
    }

    private static final Net WIFI = net("wifi", Net.Kind.WIFI);
    private static final Net LOGIN = net("wifi-", Net.Kind.WIFI, Net.Trait.CAPTIVE, Net.Trait.DEFAULT);
    private static final Net UNTESTED = net("wifi-", Net.Kind.WIFI);
    private static final Net ACCEPTED = net("wifi-", Net.Kind.WIFI, Net.Trait.DEFAULT);
    private static final Net BLOCKED = net("wifi", Net.Kind.WIFI, Net.Trait.BLOCKED);
    private static final Net HOTSPOT = net("hotspot", Net.Kind.WIFI, Net.Trait.METERED);
    private static final Net TETHER = net("bt", Net.Kind.OTHER);
    private static final Net SATELLITE = net("sat", Net.Kind.SATELLITE);
    private static final Net LTE = net("lte", Net.Kind.CELLULAR, Net.Trait.METERED);
    private static final Net UNMETERED = net("lte", Net.Kind.CELLULAR);
    private static final Net ABROAD = net("lte", Net.Kind.CELLULAR, Net.Trait.METERED, Net.Trait.ROAMING);
    private static final Net BARRED = net("lte", Net.Kind.CELLULAR, Net.Trait.METERED, Net.Trait.BLOCKED);
    private static final Net VPN = net("tun", Net.Kind.VPN);

    private static Offer offer(MobilePolicy.Mode mode, boolean consent, boolean roaming, boolean saving, Set<String> silent, Net... present) {
        return new Offer(Arrays.asList(present), new MobilePolicy(mode, consent, roaming, Limits.NONE), saving, false, silent);
    }

    private static String text(Offer o) {
        StringBuilder b = new StringBuilder();
        for (Map.Entry<Net, Offer.Use> e : o.uses().entrySet()) {
            b.append(b.length() == 0 ? "" : " ").append(e.getKey().name).append('=').append(e.getValue());
        }
        return b.toString();
    }

    /** Apps are sent to the proxy only where it serves them: they are never offline while the phone is online. */
    @Test
    public void appsAreServedOrLeftAlone() {
        AppAccess all = AppAccess.of(AppAccess.Choice.ALL, Collections.<Integer>emptySet(), Reach.SETTING, false);
        AppAccess chosen = AppAccess.of(AppAccess.Choice.CHOSEN, Collections.singleton(10200), Reach.VPN, true);
        Object[][] rows = { // with all, with some, with none
            {offer(HELPS, true, false, false, NONE, WIFI, LTE), true, true, true},
            {offer(HELPS, true, false, false, NONE, LTE), true, false, false},
            {offer(HELPS, true, false, false, NONE, HOTSPOT), true, false, false},
            {offer(WIFI_ONLY, false, false, false, NONE, LTE), false, false, false},
            {offer(WIFI_ONLY, false, false, false, NONE, WIFI, LTE), true, true, true},
            {offer(HELPS, true, false, false, NONE), true, true, true},
            {offer(HELPS, true, false, false, NONE, UNTESTED, VPN), true, true, true},
            {offer(HELPS, true, false, false, NONE, BLOCKED), false, false, false},
        };
        for (int i = 0; i < rows.length; i++) {
            Offer o = (Offer) rows[i][0];
            assertEquals(i + " all", rows[i][1], o.serves(all));
            assertEquals(i + " some", rows[i][2], o.serves(chosen));
            assertEquals(i + " none", rows[i][3], o.serves(AppAccess.NONE));
        }
    }

    @Test
    public void whatMayCostNeedsConsent() {
        Object[][] rows = {
            // mode, networks, used with consent
            {WIFI_ONLY, new Net[] {WIFI, LTE}, "wifi=OFFERED lte=NOT_WANTED"},
            {WIFI_ONLY, new Net[] {LTE}, "lte=NOT_WANTED"},
            {HELPS, new Net[] {WIFI, LTE, VPN}, "wifi=OFFERED lte=OFFERED tun=VPN"},
            {HELPS, new Net[] {WIFI, UNMETERED}, "wifi=OFFERED lte=OFFERED"},
            {HELPS, new Net[] {HOTSPOT, TETHER, SATELLITE}, "hotspot=OFFERED bt=OFFERED sat=OFFERED"},
            {BACKUP, new Net[] {WIFI, LTE}, "wifi=OFFERED lte=BACKUP"},
            {BACKUP, new Net[] {WIFI, HOTSPOT, SATELLITE}, "wifi=OFFERED hotspot=BACKUP sat=BACKUP"},
            {BACKUP, new Net[] {LTE}, "lte=OFFERED"},
            {BACKUP, new Net[] {LOGIN, LTE}, "wifi-=NOT_VALIDATED lte=OFFERED"},
            {BACKUP, new Net[] {BLOCKED, LTE}, "wifi=BLOCKED lte=OFFERED"},
        };
        for (Object[] r : rows) {
            MobilePolicy.Mode mode = (MobilePolicy.Mode) r[0];
            Net[] present = (Net[]) r[1];
            assertEquals(r[2], text(offer(mode, true, false, false, NONE, present)));
            List<Net> free = offer(mode, false, true, false, NONE, present).offered();
            for (Net n : free) {
                assertFalse("without consent: " + n.name, n.costs());
            }
        }
    }

    @Test
    public void roamingNeedsItsOwnConsent() {
        for (MobilePolicy.Mode mode : new MobilePolicy.Mode[] {HELPS, BACKUP}) {
            assertEquals("lte=ROAMING", text(offer(mode, true, false, false, NONE, ABROAD)));
            assertEquals("lte=OFFERED", text(offer(mode, true, true, false, NONE, ABROAD)));
            assertEquals("lte=NOT_WANTED", text(offer(mode, false, true, false, NONE, ABROAD)));
        }
        assertEquals("lte=NOT_WANTED", text(offer(WIFI_ONLY, true, true, false, NONE, ABROAD)));
    }

    @Test
    public void theSystemsRefusalsAreHeeded() {
        assertEquals("wifi=OFFERED lte=DATA_SAVER", text(offer(HELPS, true, true, true, NONE, WIFI, LTE)));
        assertEquals("hotspot=DATA_SAVER", text(offer(HELPS, true, true, true, NONE, HOTSPOT)));
        assertEquals("lte=BLOCKED", text(offer(HELPS, true, true, false, NONE, BARRED)));
        assertEquals("the reason that the user can change here", "lte=NOT_WANTED", text(offer(WIFI_ONLY, true, true, true, NONE, BARRED)));
    }

    private static Offer resting(MobilePolicy.Mode mode, Set<String> silent, Net... present) {
        return new Offer(Arrays.asList(present), new MobilePolicy(mode, true, false, Limits.NONE), false, true, silent);
    }

    /** Mobile data pauses only beside a network that works: the phone stays online. */
    @Test
    public void batterySaverPausesMobileDataBesideWifi() {
        Set<String> silent = new HashSet<String>(Arrays.asList("wifi"));
        Object[][] rows = { // offer, uses, whether mobile data is requested
            {resting(HELPS, NONE, WIFI, LTE), "wifi=OFFERED lte=BATTERY_SAVER", false},
            {resting(HELPS, NONE, WIFI), "wifi=OFFERED", false},
            {resting(HELPS, NONE, WIFI, UNMETERED, SATELLITE), "wifi=OFFERED lte=BATTERY_SAVER sat=BATTERY_SAVER", false},
            {resting(HELPS, NONE, WIFI, HOTSPOT, TETHER), "wifi=OFFERED hotspot=OFFERED bt=OFFERED", false},
            {resting(HELPS, NONE, LTE), "lte=OFFERED", true},
            {resting(HELPS, NONE, HOTSPOT, LTE), "hotspot=OFFERED lte=OFFERED", true},
            {resting(HELPS, NONE, LOGIN, LTE), "wifi-=NOT_VALIDATED lte=OFFERED", true},
            {resting(HELPS, silent, WIFI, LTE), "wifi=OFFERED lte=OFFERED", true},
            {resting(BACKUP, NONE, WIFI, LTE), "wifi=OFFERED lte=BACKUP", false},
            {resting(BACKUP, silent, WIFI, LTE), "wifi=OFFERED lte=OFFERED", true},
            {resting(WIFI_ONLY, NONE, WIFI, LTE), "wifi=OFFERED lte=NOT_WANTED", false},
        };
        for (Object[] r : rows) {
            assertEquals(r[1], text((Offer) r[0]));
            assertEquals(r[1] + " is asked for", r[2], ((Offer) r[0]).request(true));
        }
    }

    @Test
    public void theBackupComesWhenWifiIsSilent() {
        Set<String> silent = new HashSet<String>(Arrays.asList("wifi"));
        assertEquals("wifi=OFFERED lte=OFFERED", text(offer(BACKUP, true, false, false, silent, WIFI, LTE)));
        assertEquals("wifi=OFFERED lte=NOT_WANTED", text(offer(BACKUP, false, false, false, silent, WIFI, LTE)));
    }

    @Test
    public void whatTheUserAcceptedLeadsOut() {
        assertEquals("wifi-=OFFERED", text(offer(WIFI_ONLY, false, false, false, NONE, ACCEPTED)));
        assertEquals("wifi-=NOT_VALIDATED", text(offer(WIFI_ONLY, false, false, false, NONE, UNTESTED)));
        assertEquals("wifi-=NOT_VALIDATED", text(offer(WIFI_ONLY, false, false, false, NONE, LOGIN)));
    }

    @Test
    public void mobileDataIsAskedForOnlyWhileItHelps() {
        Set<String> silent = new HashSet<String>(Arrays.asList("wifi"));
        for (MobilePolicy.Mode mode : MobilePolicy.Mode.values()) {
            for (int i = 0; i < 16; i++) {
                boolean consent = (i & 1) != 0;
                boolean wanted = (i & 2) != 0;
                boolean saving = (i & 4) != 0;
                boolean dead = (i & 8) != 0;
                boolean want = consent && wanted && !saving && (mode == HELPS || mode == BACKUP && dead);
                Offer o = offer(mode, consent, true, saving, dead ? silent : NONE, WIFI);
                assertEquals(mode + " " + i, want, o.request(wanted));
            }
        }
    }

    @Test
    public void eachSimHasAnAccount() {
        assertEquals("cellular-1", LTE.account());
        assertEquals("metered", HOTSPOT.account());
        assertEquals("metered", TETHER.account());
        assertEquals("metered", SATELLITE.account());
        assertEquals("", WIFI.account());
        assertEquals("cellular", Net.account(Net.NO_SIM));
    }
}
