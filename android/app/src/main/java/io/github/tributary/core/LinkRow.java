package io.github.tributary.core;

import java.util.ArrayList;
import java.util.List;

/** A network as people are shown it: what the system tells of it, what the daemon does with it, and why. A value. */
public final class LinkRow {
    /** Whether a network is used. */
    public enum Use {
        /** The daemon uses it, see {@link LinkRow#link}. */
        USED,
        /** Offered to the daemon, which has not said anything of it yet. */
        OFFERED,
        /** It does not lead to the internet: a login page, or no way on. */
        NOT_VALIDATED,
        /** The user has not agreed to mobile data, or wants Wi-Fi only. */
        NOT_WANTED,
        /** Mobile data that waits for Wi-Fi to go. */
        BACKUP,
        /** A VPN: it leads over the other networks itself. */
        VPN
    }

    public final Net net;
    public final Use use;

    /** What the daemon says of it; null unless used. */
    public final Status.Link link;

    private LinkRow(Net net, Use use, Status.Link link) {
        this.net = net;
        this.use = use;
        this.link = link;
    }

    /** A row for each network there is; status null = the daemon has said nothing yet. */
    public static List<LinkRow> rows(List<Net> present, MobilePolicy policy, Status status) {
        List<Net> offered = policy.offer(present);
        List<LinkRow> rows = new ArrayList<LinkRow>();
        for (Net n : present) {
            Status.Link l = status == null ? null : status.link(n.name);
            if (offered.contains(n)) {
                rows.add(new LinkRow(n, l == null ? Use.OFFERED : Use.USED, l));
            } else {
                rows.add(new LinkRow(n, why(n, policy), null));
            }
        }
        return rows;
    }

    private static Use why(Net n, MobilePolicy policy) {
        if (n.kind == Net.Kind.VPN) {
            return Use.VPN;
        }
        if (n.kind == Net.Kind.CELLULAR && !policy.mobileAllowed()) {
            return Use.NOT_WANTED;
        }
        return n.usable() ? Use.BACKUP : Use.NOT_VALIDATED;
    }
}
