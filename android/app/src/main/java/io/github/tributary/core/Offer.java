package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Which networks the daemon may use, and for each other network the reason why not. A value. */
public final class Offer {
    /** What is done with a network. */
    public enum Use {
        /** Offered to the daemon. */
        OFFERED,
        /** It does not lead to the internet: a login page, or no way out. */
        NOT_VALIDATED,
        /** It costs money, and the user has not agreed, or wants Wi-Fi only. */
        NOT_WANTED,
        /** Roaming, which the user has not agreed to. */
        ROAMING,
        /** It costs money, and the system's Data Saver is on. */
        DATA_SAVER,
        /** The system does not let this app use it. */
        BLOCKED,
        /** It costs money, and waits until the others are gone. */
        BACKUP,
        /** Its radio costs battery, the system's Battery Saver is on, and another network works. */
        BATTERY_SAVER,
        /** A VPN: it runs over the other networks itself. */
        VPN
    }

    private final Map<Net, Use> uses = new LinkedHashMap<Net, Use>();
    private final MobilePolicy policy;
    private final boolean saving;
    private final boolean resting;
    private final boolean other; // a network that costs nothing works

    /**
     * Judges the networks present. saving: the system's Data Saver applies to this app. resting: Battery Saver is on,
     * and the user has not allowed mobile data beside Wi-Fi during that time. silent: the names of networks that bring
     * nothing according to the daemon, though the system may not have noticed.
     */
    public Offer(List<Net> present, MobilePolicy policy, boolean saving, boolean resting, Set<String> silent) {
        this.policy = policy;
        this.saving = saving;
        this.resting = resting;
        boolean works = false;
        for (Net n : present) {
            works |= n.usable() && !n.costs() && !n.is(Net.Trait.BLOCKED) && !silent.contains(n.name);
        }
        other = works;
        for (Net n : present) {
            uses.put(n, judge(n));
        }
    }

    private Use judge(Net n) {
        if (n.kind == Net.Kind.VPN) {
            return Use.VPN;
        }
        if (n.costs() && !policy.mobileAllowed()) {
            return Use.NOT_WANTED;
        }
        if (n.is(Net.Trait.ROAMING) && !policy.roaming) {
            return Use.ROAMING;
        }
        if (n.costs() && saving) {
            return Use.DATA_SAVER;
        }
        if (n.is(Net.Trait.BLOCKED)) {
            return Use.BLOCKED;
        }
        if (!n.usable()) {
            return Use.NOT_VALIDATED;
        }
        if (n.costs() && policy.mode == MobilePolicy.Mode.MOBILE_BACKUP && other) {
            return Use.BACKUP;
        }
        boolean radio = n.kind == Net.Kind.CELLULAR || n.kind == Net.Kind.SATELLITE;
        return radio && rests() ? Use.BATTERY_SAVER : Use.OFFERED;
    }

    /**
     * Returns whether other apps are as well off with the proxy as without it: it has a network for them, or nobody has
     * one. Otherwise they would be offline, though the phone is not.
     */
    public boolean serves(AppAccess apps) {
        boolean any = false;
        for (Map.Entry<Net, Use> e : uses.entrySet()) {
            any |= e.getKey().usable();
            if (e.getValue() == Use.OFFERED && (apps.choice == AppAccess.Choice.ALL || !e.getKey().costs())) {
                return true;
            }
        }
        return !any;
    }

    /** Returns what is done with each network, in the networks' order. */
    public Map<Net, Use> uses() {
        return Collections.unmodifiableMap(uses);
    }

    /** Returns the networks that the daemon may use, in their order. */
    public List<Net> offered() {
        List<Net> all = new ArrayList<Net>();
        for (Map.Entry<Net, Use> e : uses.entrySet()) {
            if (e.getValue() == Use.OFFERED) {
                all.add(e.getKey());
            }
        }
        return all;
    }

    /** Returns whether mobile data pauses for Battery Saver: it could help, and the phone is online without it. */
    boolean rests() {
        return resting && other && policy.mode == MobilePolicy.Mode.MOBILE_HELPS;
    }

    /**
     * Returns whether to ask the system for mobile data beside Wi-Fi, which costs battery: only while the daemon has a
     * use for it. It has none once a limit is used up.
     */
    public boolean request(boolean wanted) {
        return wanted && policy.mobileAllowed() && !saving && (policy.mode == MobilePolicy.Mode.MOBILE_HELPS && !rests() || !other);
    }
}
