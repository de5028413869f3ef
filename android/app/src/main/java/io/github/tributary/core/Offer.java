package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Which of the networks the daemon may use, and the reason for each that it may not. A value. */
public final class Offer {
    /** What is done with a network. */
    public enum Use {
        /** Offered to the daemon. */
        OFFERED,
        /** It does not lead to the internet: a login page, or no way on. */
        NOT_VALIDATED,
        /** It costs, and the user has not agreed, or wants Wi-Fi only. */
        NOT_WANTED,
        /** Roaming, which the user has not agreed to. */
        ROAMING,
        /** It costs, and the system's Data Saver is on. */
        DATA_SAVER,
        /** The system does not let this app use it. */
        BLOCKED,
        /** It costs, and waits for the others to go. */
        BACKUP,
        /** A VPN: it leads over the other networks itself. */
        VPN
    }

    private final Map<Net, Use> uses = new LinkedHashMap<Net, Use>();
    private final MobilePolicy policy;
    private final boolean saving;
    private final boolean other; // there is one that costs nothing and works

    /**
     * Judges the networks there are. Saving: the system's Data Saver holds for this app. Silent: the names of networks of which
     * the daemon says that they bring nothing, though the system may not have noticed.
     */
    public Offer(List<Net> present, MobilePolicy policy, boolean saving, Set<String> silent) {
        this.policy = policy;
        this.saving = saving;
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
        return n.costs() && policy.mode == MobilePolicy.Mode.MOBILE_BACKUP && other ? Use.BACKUP : Use.OFFERED;
    }

    /**
     * Whether other apps are as well off by the proxy as without it: it has a network for them, or there is none for anybody. Else they
     * would be offline, though the phone is not.
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

    /** What is done with each network, in their order. */
    public Map<Net, Use> uses() {
        return Collections.unmodifiableMap(uses);
    }

    /** The networks that the daemon may use, in their order. */
    public List<Net> offered() {
        List<Net> all = new ArrayList<Net>();
        for (Map.Entry<Net, Use> e : uses.entrySet()) {
            if (e.getValue() == Use.OFFERED) {
                all.add(e.getKey());
            }
        }
        return all;
    }

    /**
     * Whether the system is to be asked for mobile data beside Wi-Fi, which costs battery: only while the daemon has a use for it,
     * which it has not when nothing is left of a limit.
     */
    public boolean request(boolean wanted) {
        return wanted && policy.mobileAllowed() && !saving && (policy.mode == MobilePolicy.Mode.MOBILE_HELPS || !other);
    }
}
