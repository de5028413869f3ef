package io.github.tributary.core;

/**
 * What the user wants of a relay, from the wish until the daemon has done it or said why not: to pair with one, or to forget one. One at a
 * time. Not safe for concurrent use.
 */
public final class RelayWish {
    /** The daemon's end. */
    public interface Daemon {
        void pair(long id, Invitation invitation);

        void forget(long id, String address);
    }

    /** How it ended: a code of docs/APPBRIDGE.md, or one of these. */
    public static final String DONE = "";

    public static final String NO_ANSWER = "no_answer";

    private long last; // number of a wish
    private Invitation invitation; // null = none
    private String forgotten; // address; null = none
    private String end; // null = none has ended

    /** Whether the daemon has to do something. */
    public boolean open() {
        return invitation != null || forgotten != null;
    }

    /** Whether it is to pair with one. */
    public boolean pairs() {
        return invitation != null;
    }

    /** The identity of the key of the relay to pair with; "" = none is. */
    public String key() {
        return invitation == null ? "" : invitation.key;
    }

    /** How the last one ended; null = none has, or another one is open. */
    public String end() {
        return end;
    }

    /** Wants a relay paired, in place of what was wanted before. */
    public void pair(Invitation i) {
        begin();
        invitation = i;
    }

    /** Wants a relay forgotten, in place of what was wanted before. */
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

    /** Tells a daemon, if there is something to tell. */
    public void tell(Daemon d) {
        if (invitation != null) {
            d.pair(last, invitation);
        } else if (forgotten != null) {
            d.forget(last, forgotten);
        }
    }

    /** Takes the daemon's answer; false = it is not that to the wish that is open. */
    public boolean answered(long id, String code) {
        if (!open() || id != last) {
            return false;
        }
        invitation = null; // it is valid once: nobody needs the secret any more
        forgotten = null;
        end = code;
        return true;
    }

    /** Nobody has answered for too long. */
    public void expire() {
        if (open()) {
            answered(last, NO_ANSWER);
        }
    }
}
