package io.github.tributary.core;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A network as people see it: what the system reports of it, what the daemon does with it, and why. A value. */
public final class LinkRow {
    public final Net net;
    public final Offer.Use use;

    /** What the daemon does with it; null = it is not offered, or the daemon has not reported on it yet. */
    public final Status.Link link;

    private LinkRow(Net net, Offer.Use use, Status.Link link) {
        this.net = net;
        this.use = use;
        this.link = link;
    }

    /** Returns a row for each network present; status null = the daemon has not reported yet. */
    public static List<LinkRow> rows(Offer offer, Status status) {
        List<LinkRow> rows = new ArrayList<LinkRow>();
        for (Map.Entry<Net, Offer.Use> e : offer.uses().entrySet()) {
            boolean offered = e.getValue() == Offer.Use.OFFERED;
            rows.add(new LinkRow(e.getKey(), e.getValue(), offered && status != null ? status.link(e.getKey().name) : null));
        }
        return rows;
    }
}
