package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** One network as the system describes it. A value: a change makes another one. */
public final class Net {
    /** What a network is made of. */
    public enum Kind {
        WIFI("wifi"),
        CELLULAR("cellular"),
        ETHERNET("ethernet"),
        VPN("vpn"),
        OTHER("other");

        /** The word of docs/APPBRIDGE.md. */
        public final String word;

        Kind(String word) {
            this.word = word;
        }
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

    public final boolean metered;

    /** It leads to the internet; a login page does not. */
    public final boolean validated;

    public Net(
            long handle,
            String name,
            Kind kind,
            List<String> addrs,
            List<String> dns,
            String nat64,
            boolean metered,
            boolean validated) {
        this.handle = handle;
        this.name = name;
        this.kind = kind;
        this.addrs = Collections.unmodifiableList(new ArrayList<String>(addrs));
        this.dns = Collections.unmodifiableList(new ArrayList<String>(dns));
        this.nat64 = nat64;
        this.metered = metered;
        this.validated = validated;
    }

    /** Whether the daemon can use it: known well enough, and it leads out by itself. */
    public boolean usable() {
        return validated && kind != Kind.VPN && !name.isEmpty() && !addrs.isEmpty();
    }
}
