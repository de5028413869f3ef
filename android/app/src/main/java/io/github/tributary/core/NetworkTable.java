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
 * The networks there are, from callbacks that may come in any order and late: of a network that was lost nothing is believed
 * before it is said to be there again. Not safe for concurrent use.
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
            return new Entry(); // a callback that comes late changes nothing
        }
        Entry e = entries.get(handle);
        if (e == null) {
            e = new Entry();
            entries.put(handle, e);
        }
        return e;
    }

    /** The network is there, also again: "lost" may mean that it did not fit a request any more. */
    public void available(long handle) {
        lost.remove(handle);
    }

    /** What the network is made of, which SIM it is of or {@link Net#NO_SIM}, and what else the system says of it. */
    public void capabilities(long handle, Net.Kind kind, int sim, Set<Net.Trait> traits) {
        Entry e = entry(handle);
        e.kind = kind;
        e.sim = sim;
        e.told = traits;
    }

    /** Whether the system does not let this app use the network. */
    public void blocked(long handle, boolean blocked) {
        entry(handle).blocked = blocked;
    }

    /** Which network the system uses for apps that do not choose; null = none. */
    public void byDefault(Long handle) {
        byDefault = handle;
    }

    /**
     * Its interface and addresses, the prefix of its NAT64 or "", and whether it names our proxy to apps. The system looks by that whether the network leads
     * out: it cannot find out unless the network is used before.
     */
    public void properties(long handle, String name, List<String> addrs, List<String> dns, String nat64, boolean ours) {
        Entry e = entry(handle);
        e.name = name == null ? "" : name;
        e.addrs = new ArrayList<String>(addrs);
        e.dns = new ArrayList<String>(dns);
        e.nat64 = nat64;
        e.ours = ours;
    }

    /** The network is gone. */
    public void lost(long handle) {
        entries.remove(handle);
        lost.add(handle);
        if (lost.size() > REMEMBERED) {
            lost.remove(lost.iterator().next());
        }
    }

    /** All networks that both callbacks have told of, those that cost nothing first, else in the order of their coming. */
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
