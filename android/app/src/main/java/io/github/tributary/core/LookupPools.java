package io.github.tributary.core;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** A few threads for each network, which end when idle. Safe for concurrent use. */
public final class LookupPools implements HostSession.Lookups {
    private static final int THREADS = 8; // for each network
    private static final int WAITING = 64;
    private static final int NETWORKS = 64; // networks remembered
    private static final long IDLE_SECONDS = 10;

    private final Map<Long, ThreadPoolExecutor> pools = new HashMap<Long, ThreadPoolExecutor>(); // guarded by this
    private boolean closed;

    @Override
    public synchronized void execute(long handle, Runnable lookup) {
        if (closed) {
            throw new RejectedExecutionException("closed");
        }
        ThreadPoolExecutor p = pools.get(handle);
        if (p == null) {
            if (pools.size() >= NETWORKS) { // some are of networks that are gone
                endAll();
            }
            p = new ThreadPoolExecutor(THREADS, THREADS, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue<Runnable>(WAITING));
            p.allowCoreThreadTimeOut(true);
            pools.put(handle, p);
        }
        p.execute(lookup);
    }

    /** Ends all pools and accepts no more lookups. */
    public synchronized void close() {
        closed = true;
        endAll();
    }

    private void endAll() {
        for (ThreadPoolExecutor p : pools.values()) {
            p.shutdownNow();
        }
        pools.clear();
    }
}
