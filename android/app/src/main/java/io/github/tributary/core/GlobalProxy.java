package io.github.tributary.core;

/**
 * The proxy that the system names to apps, set while ours runs. While ours is down, apps that were told of it are
 * offline: what was set is undone, by the next process at the latest, and what anybody else set is left alone. Safe for
 * concurrent use.
 */
public final class GlobalProxy {
    /** The system's setting, "host:port". */
    public interface Setting {
        /** Returns null or "" if there is none. */
        String read();

        /** Throws SecurityException if the user has not permitted it. */
        void write(String value);
    }

    /** State that outlives the process. Each call returns once the state is stored. */
    public interface Memory {
        /** What was set before ours, "" = nothing; null = ours is not set. */
        String before();

        void remember(String before);

        void forget();
    }

    /** The value that removes the proxy: the system ignores both null and "". */
    public static final String NONE = ":0";

    private final String ours;
    private final Setting setting;
    private final Memory memory;
    private boolean ended;

    /** Creates a setting whose value is to be ours, "host:port". */
    public GlobalProxy(String ours, Setting setting, Memory memory) {
        this.ours = ours;
        this.setting = setting;
        this.memory = memory;
    }

    /** Names our proxy to apps. Throws SecurityException if that is not permitted, and then changes nothing. */
    public synchronized void set() {
        if (ended) {
            return;
        }
        String now = setting.read();
        if (ours.equals(now)) {
            return; // set by us, or by a person, who undoes it
        }
        memory.remember(now == null ? "" : now);
        try {
            setting.write(ours);
        } catch (SecurityException e) {
            memory.forget();
            throw e;
        }
    }

    /**
     * Undoes what {@link #set} did, in this process or in an earlier one. Throws SecurityException if that is no longer
     * permitted.
     */
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

    /**
     * Clears the setting and never sets it again: the process is crashing, and its other threads may run on for a
     * while.
     */
    public synchronized void end() {
        ended = true;
        clear();
    }
}
