package io.github.tributary.core;

import java.io.IOException;
import java.net.InetSocketAddress;

/** Runs a download on a thread of its own, and tries again what broke off, until it is done, paused, or of no use. */
public final class DownloadJob {
    /** Hears of every step, by the job's thread; the last one is not active. */
    public interface Listener {
        void now(DownloadState state);
    }

    /** Where the daemon listens. */
    public interface Proxy {
        /** Null while it does not: whoever else may have the port is told nothing. Called by the job's thread. */
        InetSocketAddress address();
    }

    private static final long BETWEEN_MILLIS = 250; // between two steps that are bytes only

    private final Proxy proxy;
    private final Target.Files files;
    private final Listener listener;
    private DownloadState state; // of the job's thread
    private long toldAt = System.nanoTime();

    private Download download; // what can be cancelled; guarded by this, as are stopped and given
    private boolean stopped;
    private boolean given;

    /** A job that begins a download, or goes on with it. */
    public DownloadJob(DownloadState from, Target.Files files, Proxy proxy, Listener listener) {
        this.state = from.in(DownloadState.Phase.RUNNING, "");
        this.files = files;
        this.proxy = proxy;
        this.listener = listener;
    }

    public void start() {
        new Thread("download") {
            @Override
            public void run() {
                work();
            }
        }.start();
    }

    /** Stops it: the last step says that it is paused, unless it ended before. */
    public synchronized void pause() {
        stopped = true;
        notifyAll();
        if (download != null) {
            download.cancel();
        }
    }

    /** Stops it and deletes its file, unless it is done. May be called before start, and must be followed by it then. */
    public synchronized void giveUp() {
        given = true;
        pause();
    }

    private void work() {
        try {
            Target target = target();
            try (Target.Opened file = target.open()) {
                fetch(target, file);
            }
            if (isGiven() && state.phase != DownloadState.Phase.DONE) {
                target.delete();
            }
        } catch (IOException e) {
            tell(state.in(DownloadState.Phase.FAILED, text(e)));
        }
    }

    private Target target() throws IOException {
        if (!state.place.isEmpty()) {
            return files.at(state.place);
        }
        Target t = files.create(state.name);
        tell(state.with(t.place()));
        return t;
    }

    private void fetch(Target target, Target.Opened file) throws IOException {
        Retries retries = new Retries();
        while (true) {
            Download d = new Download(state.url, proxy.address(), file.channel, new Counter());
            if (!state.validator.isEmpty()) {
                d.resume(state.validator, state.bytes);
            }
            if (!enter(d)) {
                tell(state.in(DownloadState.Phase.PAUSED, ""));
                return;
            }
            try {
                d.run();
            } catch (IOException e) {
                state = state.at(d);
                long wait = retries.after(e, state.bytes);
                if (isStopped()) {
                    continue; // and end
                }
                if (wait < 0) {
                    throw e;
                }
                tell(state.in(DownloadState.Phase.WAITING, text(e)));
                sleep(wait);
                tell(state.in(DownloadState.Phase.RUNNING, ""));
                continue;
            }
            state = state.at(d);
            target.finish(state.name);
            tell(state.in(DownloadState.Phase.DONE, ""));
            return;
        }
    }

    private synchronized boolean enter(Download d) {
        download = stopped ? null : d;
        return !stopped;
    }

    private synchronized boolean isStopped() {
        return stopped;
    }

    private synchronized boolean isGiven() {
        return given;
    }

    private synchronized void sleep(long millis) {
        long end = System.nanoTime() + millis * 1_000_000;
        for (long left = millis; left > 0 && !stopped; left = (end - System.nanoTime()) / 1_000_000) {
            try {
                wait(left);
            } catch (InterruptedException e) {
                stopped = true;
            }
        }
    }

    private void tell(DownloadState s) {
        state = s;
        toldAt = System.nanoTime();
        listener.now(s);
    }

    private static String text(IOException e) {
        return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    }

    private final class Counter implements Download.Progress {
        @Override
        public void at(Download d) {
            boolean first = d.total() != state.total || !d.validator().equals(state.validator);
            state = state.at(d);
            if (first || System.nanoTime() - toldAt >= BETWEEN_MILLIS * 1_000_000) {
                tell(state);
            }
        }
    }
}
