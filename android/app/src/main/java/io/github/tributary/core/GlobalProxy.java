package io.github.tributary.core;

/**
 * The proxy that the system names to apps, set while ours runs. If ours is down, apps that were told of it are offline: what
 * was set is taken back, by the next process at the latest, and what somebody else has set is left alone. Safe for concurrent
 * use.
 */
public final class GlobalProxy {
    /** The system's setting, "host:port". */
    public interface Setting {
        /** Returns null or "" if there is none. */
        String read();

        /** Throws SecurityException if the user has not permitted it. */
        void write(String value);
    }

    /** What outlives the process. Each call returns when it is kept. */
    public interface Memory {
        /** What was set before ours, "" = nothing; null = ours is not set. */
        String before();

        void remember(String before);

        void forget();
    }

    /** Takes the proxy away: the system heeds neither null nor "". */
    public static final String NONE = ":0";

    private final String ours;
    private final Setting setting;
    private final Memory memory;
    private boolean ended;

    /** A setting that is to be ours, "host:port". */
    public GlobalProxy(String ours, Setting setting, Memory memory) {
        this.ours = ours;
        this.setting = setting;
        this.memory = memory;
    }

    /** Names our proxy to apps. Throws SecurityException if that is not permitted; nothing has changed then. */
    public synchronized void set() {
        if (ended) {
            return;
        }
        String now = setting.read();
        if (ours.equals(now)) {
            return; // by us, or by a person, who takes it back
        }
        memory.remember(now == null ? "" : now);
        try {
            setting.write(ours);
        } catch (SecurityException e) {
            memory.forget();
            throw e;
        }
    }

    /** Takes back what {@link #set} did, in this process or in an earlier one. Throws SecurityException if that is not permitted any more. */
    public synchronized void clear() {
        String before = memory.before();
        if (before == null) {
            return;
        }
        if (ours.equals(setting.read())) {
            setting.write(before.isEmpty() ? NONE : before);
        }
        memory.forget();
    }

    /** Clears, and sets nothing any more: the process crashes, and its other threads may go on for a while. */
    public synchronized void end() {
        ended = true;
        clear();
    }
}
