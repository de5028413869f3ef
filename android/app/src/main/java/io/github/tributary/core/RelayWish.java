package io.github.tributary.core;

/**
 * What the user wants of a relay: to pair with one, or to forget one. A wish is open until the daemon has fulfilled it
 * or reported why not. There is one wish at a time. Not safe for concurrent use.
 */
public final class RelayWish {
    /** The daemon's end. */
    public interface Daemon {
        void pair(long id, Invitation invitation);

        void forget(long id, String address);
    }

    /** The result: a code of docs/APPBRIDGE.md, or one of these. */
    public static final String DONE = "";

    public static final String NO_ANSWER = "no_answer";

    private long last; // number of the last wish
    private Invitation invitation; // null = none
    private String forgotten; // address; null = none
    private String end; // result of the last wish; null = none has ended

    /** Returns whether the daemon has something to do. */
    public boolean open() {
        return invitation != null || forgotten != null;
    }

    /** Returns whether the wish is to pair with one. */
    public boolean pairs() {
        return invitation != null;
    }

    /** Returns the identity of the key of the relay to pair with; "" = none. */
    public String key() {
        return invitation == null ? "" : invitation.key;
    }

    /** Returns the result of the last wish; null = none has ended, or another one is open. */
    public String end() {
        return end;
    }

    /** Wishes to pair with a relay, in place of the wish before. */
    public void pair(Invitation i) {
        begin();
        invitation = i;
    }

    /** Wishes to forget a relay, in place of the wish before. */
    public void forget(String address) {
        begin();
        forgotten = address;
    }

    private void begin() {
        invitation = null;
        forgotten = null;
        end = null;
        last++;
    }

    /** Sends the open wish, if any, to a daemon. */
    public void tell(Daemon d) {
        if (invitation != null) {
            d.pair(last, invitation);
        } else if (forgotten != null) {
            d.forget(last, forgotten);
        }
    }

    /** Handles the daemon's answer; false = it does not answer the open wish. */
    public boolean answered(long id, String code) {
        if (!open() || id != last) {
            return false;
        }
        invitation = null; // it is valid once: the secret is no longer needed
        forgotten = null;
        end = code;
        return true;
    }

    /** Ends the wish after too long without an answer. */
    public void expire() {
        if (open()) {
            answered(last, NO_ANSWER);
        }
    }
}
