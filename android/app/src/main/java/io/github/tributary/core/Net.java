package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** One network as the system describes it. A value: a change makes a new one. */
public final class Net {
    /** The kind of a network. */
    public enum Kind {
        WIFI("wifi"),
        CELLULAR("cellular"),
        ETHERNET("ethernet"),
        SATELLITE("satellite"),
        VPN("vpn"),
        OTHER("other");

        /** The word in docs/APPBRIDGE.md. */
        public final String word;

        Kind(String word) {
            this.word = word;
        }
    }

    /** What the system reports of a network. */
    public enum Trait {
        /** Bytes cost money. */
        METERED,
        /** Mobile data from a foreign network. */
        ROAMING,
        /** It leads to the internet; a login page does not. */
        VALIDATED,
        /** A login page is in the way. */
        CAPTIVE,
        /** The system's own choice for apps that do not choose a network. */
        DEFAULT,
        /** The system does not let this app use it. */
        BLOCKED
    }

    /** The system's identifier of the network, never reused for another one. */
    public final long handle;

    /** The interface's name; "" while unknown. */
    public final String name;

    public final Kind kind;

    /** Each "address/bits". */
    public final List<String> addrs;

    public final List<String> dns;

    /** The "prefix/bits" through which it reaches IPv4 addresses; "" = none, or not reported. */
    public final String nat64;

    /** The system's number for the SIM; {@link #NO_SIM} = none, or not reported. */
    public final int sim;

    /** The SIM of a network without one. */
    public static final int NO_SIM = -1;

    private final Set<Trait> traits;

    public Net(
            long handle, String name, Kind kind, List<String> addrs, List<String> dns, String nat64, int sim, Set<Trait> traits) {
        this.handle = handle;
        this.name = name;
        this.kind = kind;
        this.addrs = Collections.unmodifiableList(new ArrayList<String>(addrs));
        this.dns = Collections.unmodifiableList(new ArrayList<String>(dns));
        this.nat64 = nat64;
        this.sim = sim;
        this.traits = traits.isEmpty() ? EnumSet.noneOf(Trait.class) : EnumSet.copyOf(traits);
    }

    public boolean is(Trait t) {
        return traits.contains(t);
    }

    /**
     * Returns whether the daemon can use it: it is known well enough, and it leads to the internet by itself. A network
     * that the user accepted, although it fails the system's test or part of the internet does not answer, is the
     * system's default.
     */
    public boolean usable() {
        boolean out = is(Trait.VALIDATED) || is(Trait.DEFAULT) && !is(Trait.CAPTIVE);
        return out && kind != Kind.VPN && !name.isEmpty() && !addrs.isEmpty();
    }

    /**
     * Returns whether bytes may cost money. A device that shares mobile data by Bluetooth or USB cannot always report
     * this.
     */
    public boolean costs() {
        return kind == Kind.CELLULAR || kind == Kind.SATELLITE || kind == Kind.OTHER || is(Trait.METERED);
    }

    /**
     * Returns the account that its bytes count toward: one for each SIM, one for everything else that costs money; "" =
     * no limits apply.
     */
    public String account() {
        if (kind == Kind.CELLULAR) {
            return account(sim);
        }
        return costs() ? "metered" : "";
    }

    /** Returns the account of a SIM. */
    public static String account(int sim) {
        return sim == NO_SIM ? "cellular" : "cellular-" + sim;
    }
}
