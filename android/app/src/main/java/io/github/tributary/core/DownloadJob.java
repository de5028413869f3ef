package io.github.tributary.core;

import java.io.FileNotFoundException;
import java.io.IOException;

/** Runs a download on a thread of its own, and tries again what broke off, until it is done, paused, or of no use. */
public final class DownloadJob {
    /** Hears of every step, one after the other, by threads of the job; the last one is not active. */
    public interface Listener {
        void now(DownloadState state);
    }

    private final Fetcher fetcher;
    private final Target.Files files;
    private final Listener listener;

    private DownloadState state; // guarded by this, as is the rest
    private Fetcher.Fill fill; // that runs
    private boolean stopped;
    private boolean wanted; // the stop, by the user
    private boolean woken;
    private boolean given;
    private boolean reordered; // the fill that ends is followed by another
    private boolean over; // giveUp comes too late

    /** A job that begins a download, or goes on with it. */
    public DownloadJob(DownloadState from, Target.Files files, Fetcher fetcher, Listener listener) {
        this.state = from.in(DownloadState.Phase.RUNNING);
        this.files = files;
        this.fetcher = fetcher;
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
        wanted |= !stopped;
        stop();
    }

    /** Stops it, and the last step says that it goes on by itself, unless it ended before. */
    public synchronized void suspend() {
        stop();
    }

    /** Whether it was told to stop. */
    public synchronized boolean stops() {
        return stopped;
    }

    /** Tries again at once, if it waits for that. */
    public synchronized void wake() {
        woken = true;
        notifyAll();
    }

    /**
     * Has only networks that cost nothing carry it from now on, or all that are allowed. A fill that may use more than it is to
     * ends at once; one that could use more now goes on if it would have to begin anew.
     */
    public synchronized void unmetered(boolean only) {
        boolean anew = state.unmetered != only && (only || state.resumable());
        tell(state.unmetered(only));
        if (anew && !stopped) {
            reordered = true;
            if (fill != null) {
                fill.stop();
            }
            wake();
        }
    }

    private synchronized void stop() {
        stopped = true;
        notifyAll();
        if (fill != null) {
            fill.stop();
        }
    }

    /**
     * Stops it and deletes its file, unless it is done; false = it is over, and nothing is deleted. May be called before start,
     * and must be followed by it then.
     */
    public synchronized boolean giveUp() {
        given = true;
        pause();
        return !over;
    }

    private synchronized DownloadState state() {
        return state;
    }

    private synchronized void tell(DownloadState s) {
        state = s;
        listener.now(s);
    }

    private void work() {
        Target target = null;
        try {
            target = target();
            Target.Opened opened;
            try {
                opened = target.open();
            } catch (FileNotFoundException e) { // deleted: by the user, or by the system, which keeps unfinished files for a week
                target = fresh();
                opened = target.open();
            }
            try (Target.Opened file = opened) {
                fetch(target, file);
            }
        } catch (IOException | InterruptedException e) {
            boolean again = e instanceof Fetcher.Failed && ((Fetcher.Failed) e).again;
            tell(again ? state().brokenOff(why(e)) : state().in(DownloadState.Phase.FAILED, why(e)));
        }
        if (endsGiven() && target != null) {
            try {
                target.delete();
            } catch (IOException e) {
                // nobody waits for it any more
            }
        }
    }

    /** Ends the job: true = its file is to be deleted. */
    private synchronized boolean endsGiven() {
        over = true;
        return given && state.phase != DownloadState.Phase.DONE;
    }

    private Target target() throws IOException {
        if (!state().place.isEmpty()) {
            return files.at(state().place);
        }
        return fresh();
    }

    /** A file of which nothing is there. */
    private Target fresh() throws IOException {
        Target t = files.create(state().name);
        tell(state().emptied().with(t.place()));
        return t;
    }

    private void fetch(Target target, Target.Opened file) throws IOException, InterruptedException {
        Retries retries = new Retries();
        while (true) {
            try {
                if (!fillOnce(file)) {
                    if (again()) {
                        continue;
                    }
                    tell(wanted() ? state().in(DownloadState.Phase.PAUSED) : state().interrupted());
                    return;
                }
                break;
            } catch (Fetcher.Failed e) {
                long wait = retries.after(e.again, state().bytes);
                if (wait < 0) {
                    throw e;
                }
                sleepy();
                tell(state().in(DownloadState.Phase.WAITING, e.why));
                sleep(wait);
                tell(state().in(DownloadState.Phase.RUNNING));
            }
        }
        String place = target.finish(state().name);
        tell(state().with(place).in(DownloadState.Phase.DONE));
    }

    /** Returns false if it was stopped. */
    private boolean fillOnce(Target.Opened file) throws Fetcher.Failed, InterruptedException {
        Fetcher.Fill f;
        synchronized (this) {
            if (stopped) {
                return false;
            }
            reordered = false;
            f = fetcher.fill(state, file.descriptor, new Steps(state.brought));
            fill = f;
        }
        try {
            return f.await();
        } finally {
            synchronized (this) {
                fill = null;
            }
        }
    }

    /** Whether a fill ended only so that another begins, by a new order. */
    private synchronized boolean again() {
        return reordered && !stopped;
    }

    private synchronized boolean wanted() {
        return wanted;
    }

    /** From here on it can be woken. */
    private synchronized void sleepy() {
        woken = false;
    }

    private synchronized void sleep(long millis) throws InterruptedException {
        long end = System.nanoTime() + millis * 1_000_000;
        for (long left = millis; left > 0 && !stopped && !woken; left = (end - System.nanoTime()) / 1_000_000) {
            wait(left);
        }
    }

    private static Failure why(Exception e) {
        return e instanceof Fetcher.Failed ? ((Fetcher.Failed) e).why : Failure.here(Failure.FILE, e);
    }

    private final class Steps implements Fetcher.Listener {
        private final Shares before;

        Steps(Shares before) {
            this.before = before;
        }

        @Override
        public void at(Fetcher.Step s) {
            synchronized (DownloadJob.this) {
                tell(state.at(s).with(before.plus(s.brought)));
            }
        }
    }
}
