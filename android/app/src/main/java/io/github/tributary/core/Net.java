package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** One network as the system describes it. A value: a change makes another one. */
public final class Net {
    /** What a network is made of. */
    public enum Kind {
        WIFI("wifi"),
        CELLULAR("cellular"),
        ETHERNET("ethernet"),
        SATELLITE("satellite"),
        VPN("vpn"),
        OTHER("other");

        /** The word of docs/APPBRIDGE.md. */
        public final String word;

        Kind(String word) {
            this.word = word;
        }
    }

    /** What the system says of a network. */
    public enum Trait {
        /** Bytes cost money. */
        METERED,
        /** Mobile data of a foreign network. */
        ROAMING,
        /** It leads to the internet; a login page does not. */
        VALIDATED,
        /** A login page is in the way. */
        CAPTIVE,
        /** The system's own choice for apps that do not choose. */
        DEFAULT,
        /** The system does not let this app use it. */
        BLOCKED
    }

    /** What the system knows the network by; never used again for another one. */
    public final long handle;

    /** The interface's name; "" as long as it is not known. */
    public final String name;

    public final Kind kind;

    /** Each "address/bits". */
    public final List<String> addrs;

    public final List<String> dns;

    /** "prefix/bits" by which it reaches IPv4 addresses; "" = it has none, or tells none. */
    public final String nat64;

    /** The system's number for the SIM; {@link #NO_SIM} = none, or not told. */
    public final int sim;

    /** The sim of a network without one. */
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
     * Whether the daemon can use it: known well enough, and it leads out by itself. A network that the user accepted although the
     * system's test fails there, or part of the internet does not answer, is the system's default.
     */
    public boolean usable() {
        boolean out = is(Trait.VALIDATED) || is(Trait.DEFAULT) && !is(Trait.CAPTIVE);
        return out && kind != Kind.VPN && !name.isEmpty() && !addrs.isEmpty();
    }

    /** Whether bytes may cost money. Whoever shares mobile data by Bluetooth or USB cannot always say so. */
    public boolean costs() {
        return kind == Kind.CELLULAR || kind == Kind.SATELLITE || kind == Kind.OTHER || is(Trait.METERED);
    }

    /** The account that its bytes are counted on: one for each SIM, one for all else that costs; "" = they are not bounded. */
    public String account() {
        if (kind == Kind.CELLULAR) {
            return account(sim);
        }
        return costs() ? "metered" : "";
    }

    /** The account of a SIM. */
    public static String account(int sim) {
        return sim == NO_SIM ? "cellular" : "cellular-" + sim;
    }
}
