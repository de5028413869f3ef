package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The networks present, from callbacks that may arrive late and in any order: nothing is believed about a lost network
 * before it is reported available again. Not safe for concurrent use.
 */
public final class NetworkTable {
    private static final int REMEMBERED = 256;

    private static final class Entry {
        Net.Kind kind;
        int sim = Net.NO_SIM;
        Set<Net.Trait> told = Collections.emptySet();
        boolean blocked;
        boolean ours; // it names our proxy to apps
        String name = "";
        List<String> addrs = Collections.emptyList();
        List<String> dns = Collections.emptyList();
        String nat64 = "";
    }

    private final Map<Long, Entry> entries = new LinkedHashMap<Long, Entry>();
    private final Set<Long> lost = new LinkedHashSet<Long>();
    private Long byDefault; // the handle of the system's default network; null = there is none

    private Entry entry(long handle) {
        if (lost.contains(handle)) {
            return new Entry(); // a late callback changes nothing
        }
        Entry e = entries.get(handle);
        if (e == null) {
            e = new Entry();
            entries.put(handle, e);
        }
        return e;
    }

    /** The network is available, possibly again: "lost" may mean that it no longer matched a request. */
    public void available(long handle) {
        lost.remove(handle);
    }

    /** Sets the network's kind, its SIM or {@link Net#NO_SIM}, and what else the system reports of it. */
    public void capabilities(long handle, Net.Kind kind, int sim, Set<Net.Trait> traits) {
        Entry e = entry(handle);
        e.kind = kind;
        e.sim = sim;
        e.told = traits;
    }

    /** Sets whether the system does not let this app use the network. */
    public void blocked(long handle, boolean blocked) {
        entry(handle).blocked = blocked;
    }

    /** Sets the network that the system uses for apps that do not choose one; null = none. */
    public void byDefault(Long handle) {
        byDefault = handle;
    }

    /**
     * Sets its interface and addresses, the prefix of its NAT64 or "", and whether it names our proxy to apps. In that
     * case the system tests through our proxy whether the network leads to the internet, and cannot find out before the
     * network is used.
     */
    public void properties(long handle, String name, List<String> addrs, List<String> dns, String nat64, boolean ours) {
        Entry e = entry(handle);
        e.name = name == null ? "" : name;
        e.addrs = new ArrayList<String>(addrs);
        e.dns = new ArrayList<String>(dns);
        e.nat64 = nat64;
        e.ours = ours;
    }

    /** Removes the network. */
    public void lost(long handle) {
        entries.remove(handle);
        lost.add(handle);
        if (lost.size() > REMEMBERED) {
            lost.remove(lost.iterator().next());
        }
    }

    /**
     * Returns all networks that both callbacks reported, those that cost nothing first, otherwise in order of arrival.
     */
    public List<Net> snapshot() {
        List<Net> free = new ArrayList<Net>();
        List<Net> metered = new ArrayList<Net>();
        for (Map.Entry<Long, Entry> it : entries.entrySet()) {
            Entry e = it.getValue();
            if (e.kind == null || e.name.isEmpty()) {
                continue;
            }
            Set<Net.Trait> traits = EnumSet.noneOf(Net.Trait.class);
            traits.addAll(e.told);
            if (e.ours && !e.told.contains(Net.Trait.CAPTIVE)) {
                traits.add(Net.Trait.VALIDATED);
            }
            if (e.blocked) {
                traits.add(Net.Trait.BLOCKED);
            }
            if (it.getKey().equals(byDefault)) {
                traits.add(Net.Trait.DEFAULT);
            }
            Net n = new Net(it.getKey(), e.name, e.kind, e.addrs, e.dns, e.nat64, e.sim, traits);
            (n.costs() ? metered : free).add(n);
        }
        free.addAll(metered);
        return free;
    }
}
