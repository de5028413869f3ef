package io.github.tributary.core;

import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Keeps the daemon's process running: starts it, restarts it when it dies, after a longer wait each time, and ends it.
 * A thread of its own waits for the process. Call start and stop once each.
 */
public final class DaemonProcess {
    /** Hears of events. Called on the thread of the process. */
    public interface Listener {
        /** The daemon runs. */
        void started();

        /** It ended without being stopped; it is started again after the wait. */
        void died(int code, long waitMillis);
    }

    private static final long FIRST_WAIT = 500;
    private static final long LONGEST_WAIT = 60_000;

    /** A run of this length in milliseconds does not count as a failed start: the next wait is short again. */
    private static final long HEALTHY = 30_000;

    private final List<String> command;
    private final Map<String, String> env;
    private final File dir;
    private final File log;
    private final Listener listener;
    private final Thread thread;

    private Process process; // guarded by this, as is stopped
    private boolean stopped;

    /**
     * The child's environment is env alone; it works in dir and writes to log. The log of the previous run is kept: see
     * {@link Report#before}.
     */
    public DaemonProcess(List<String> command, Map<String, String> env, File dir, File log, Listener listener) {
        this.command = command;
        this.env = env;
        this.dir = dir;
        this.log = log;
        this.listener = listener;
        this.thread =
                new Thread("tributary") {
                    @Override
                    public void run() {
                        keep();
                    }
                };
    }

    public void start() {
        thread.start();
    }

    private void keep() {
        long wait = FIRST_WAIT;
        while (true) {
            long began = System.nanoTime();
            int code = -1;
            Process p = launch();
            if (p != null) {
                listener.started();
                try {
                    code = p.waitFor();
                } catch (InterruptedException e) {
                    p.destroyForcibly();
                    return;
                }
            }
            synchronized (this) {
                process = null;
                if (stopped) {
                    return;
                }
                if (TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began) >= HEALTHY) {
                    wait = FIRST_WAIT;
                }
            }
            listener.died(code, wait);
            if (!pause(wait)) {
                return;
            }
            wait = Math.min(2 * wait, LONGEST_WAIT);
        }
    }

    private synchronized Process launch() {
        if (stopped) {
            return null;
        }
        ProcessBuilder b = new ProcessBuilder(command).directory(dir).redirectErrorStream(true).redirectOutput(log);
        b.environment().clear();
        b.environment().putAll(env);
        if (log.length() > 0) {
            log.renameTo(Report.before(log)); // shows why the run ended; overwritten if this fails
        }
        try {
            process = b.start();
        } catch (IOException e) {
            process = null; // no such file, or no memory: retried as after a death
        }
        return process;
    }

    /** Waits, and returns false if the daemon was stopped meanwhile. */
    private synchronized boolean pause(long millis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        while (!stopped) {
            long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            if (left <= 0) {
                return true;
            }
            try {
                wait(left);
            } catch (InterruptedException e) {
                return false;
            }
        }
        return false;
    }

    /**
     * Ends the daemon, which was already told to stop, within the given milliseconds, and waits for it. It is not
     * started again.
     */
    public void stop(long patienceMillis) throws InterruptedException {
        Process p;
        synchronized (this) {
            stopped = true;
            notifyAll();
            p = process;
        }
        if (p != null && !p.waitFor(patienceMillis, TimeUnit.MILLISECONDS)) {
            p.destroy(); // SIGTERM
            if (!p.waitFor(patienceMillis, TimeUnit.MILLISECONDS)) {
                p.destroyForcibly();
            }
        }
        thread.join();
    }
}
