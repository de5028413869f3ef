package io.github.tributary.core;

/** Decides when a download that broke off is retried by itself. Not safe for concurrent use. */
public final class Retries {
    private static final long FIRST_MILLIS = 500; // the daemon may be starting
    private static final long LONGEST_MILLIS = 30_000;
    private static final long PATIENCE_MILLIS = 10 * 60_000; // without another byte
    private static final long FIRST_PATIENCE_MILLIS = 30_000; // before the first byte: the address may be wrong

    private long wait = FIRST_MILLIS;
    private long waited;
    private long bytes = -1;

    /**
     * Returns how many milliseconds to wait after a failure with this many bytes in the file; -1 = a retry is useless.
     * again: it may work then.
     */
    public long after(boolean again, long have) {
        if (have > bytes && bytes >= 0) {
            wait = FIRST_MILLIS;
            waited = 0;
        }
        bytes = have;
        if (!again || waited >= (have > 0 ? PATIENCE_MILLIS : FIRST_PATIENCE_MILLIS)) {
            return -1;
        }
        long now = wait;
        waited += now;
        wait = Math.min(2 * wait, LONGEST_MILLIS);
        return now;
    }
}
