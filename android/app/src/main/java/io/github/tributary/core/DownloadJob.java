package io.github.tributary.core;

import java.io.FileNotFoundException;
import java.io.IOException;

/** Runs a download on its own thread and retries after it breaks off, until it is done, paused, or beyond help. */
public final class DownloadJob {
    /** Hears of every step, one after the other, on threads of the job; the last state is not active. */
    public interface Listener {
        void now(DownloadState state);
    }

    private final Fetcher fetcher;
    private final Target.Files files;
    private final Listener listener;

    private DownloadState state; // guarded by this, as is the rest
    private Fetcher.Fill fill; // the running fill
    private boolean stopped;
    private boolean wanted; // the user wanted the stop
    private boolean woken;
    private boolean given;
    private boolean reordered; // the fill that ends is followed by another
    private boolean over; // too late for giveUp

    /** Creates a job that starts or resumes a download. */
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

    /** Stops it: the last step reports that it is paused, unless it ended before. */
    public synchronized void pause() {
        wanted |= !stopped;
        stop();
    }

    /** Stops it: the last step reports that it resumes by itself, unless it ended before. */
    public synchronized void suspend() {
        stop();
    }

    /** Returns whether it was told to stop. */
    public synchronized boolean stops() {
        return stopped;
    }

    /** Retries at once, if it is waiting to do so. */
    public synchronized void wake() {
        woken = true;
        notifyAll();
    }

    /**
     * Restricts it from now on to networks that cost nothing, or allows all permitted networks. A fill that uses more
     * than is now allowed ends at once; one that could now use more continues if a new fill would have to start over.
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
     * Stops it and deletes its file, unless it is done; false = it is over, and nothing is deleted. If called before
     * start, start must follow.
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
                // the file is no longer needed
            }
        }
    }

    /** Ends the job; true = its file is to be deleted. */
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

    /** Creates a file without any bytes. */
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

    /** Returns whether a fill ended only to be replaced by another, after a new order. */
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
