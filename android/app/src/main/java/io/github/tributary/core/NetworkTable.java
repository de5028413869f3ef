package io.github.tributary.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The networks there are, from callbacks that may come in any order and late. A network that was lost never comes back: the
 * system gives each a handle of its own. Not safe for concurrent use.
 */
public final class NetworkTable {
    private static final int REMEMBERED = 256;

    private static final class Entry {
        Net.Kind kind;
        boolean metered;
        boolean validated;
        String name = "";
        List<String> addrs = Collections.emptyList();
        List<String> dns = Collections.emptyList();
    }

    private final Map<Long, Entry> entries = new LinkedHashMap<Long, Entry>();
    private final Set<Long> lost = new LinkedHashSet<Long>();

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

    /** What the network is made of, and whether it is metered and leads to the internet. */
    public void capabilities(long handle, Net.Kind kind, boolean metered, boolean validated) {
        Entry e = entry(handle);
        e.kind = kind;
        e.metered = metered;
        e.validated = validated;
    }

    /** Its interface and addresses. */
    public void properties(long handle, String name, List<String> addrs, List<String> dns) {
        Entry e = entry(handle);
        e.name = name == null ? "" : name;
        e.addrs = new ArrayList<String>(addrs);
        e.dns = new ArrayList<String>(dns);
    }

    /** The network is gone. */
    public void lost(long handle) {
        entries.remove(handle);
        lost.add(handle);
        if (lost.size() > REMEMBERED) {
            lost.remove(lost.iterator().next());
        }
    }

    /** All networks that both callbacks have told of, unmetered ones first, else in the order of their coming. */
    public List<Net> snapshot() {
        List<Net> free = new ArrayList<Net>();
        List<Net> metered = new ArrayList<Net>();
        for (Map.Entry<Long, Entry> it : entries.entrySet()) {
            Entry e = it.getValue();
            if (e.kind == null || e.name.isEmpty()) {
                continue;
            }
            Net n = new Net(it.getKey(), e.name, e.kind, e.addrs, e.dns, e.metered, e.validated);
            (e.metered ? metered : free).add(n);
        }
        free.addAll(metered);
        return free;
    }
}
