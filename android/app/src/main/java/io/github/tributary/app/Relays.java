package io.github.tributary.app;

import android.content.Context;
import android.os.Handler;
import android.os.Looper;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.Invitation;
import io.github.tributary.core.RelayWish;

/** Makes the daemon pair with relays and forget them, and starts it if needed. For the main thread. */
final class Relays {
    /** Hears that a wish was fulfilled, or failed. */
    interface Listener {
        void changed();
    }

    /** Time for a daemon to start, to find a network, and to reach the relay. */
    private static final long PATIENCE_MILLIS = 60_000;

    private final Context context;
    private final Settings settings;
    private final Handler main = new Handler(Looper.getMainLooper());
    private final RelayWish wish = new RelayWish();
    private HostSession session; // with the running daemon; null = none
    private Listener listener; // null = none

    private final Runnable expire =
            new Runnable() {
                @Override
                public void run() {
                    wish.expire();
                    changed();
                }
            };

    Relays(Context context) {
        this.context = context;
        settings = new Settings(context);
    }

    void listen(Listener l) {
        listener = l;
    }

    void forget(Listener l) {
        if (listener == l) {
            listener = null;
        }
    }

    /** Returns whether the daemon is needed. */
    boolean busy() {
        return wish.open();
    }

    /** Returns the result of the last wish, see {@link RelayWish}; null = none has ended. */
    String end() {
        return wish.end();
    }

    void pair(Invitation i) {
        wish.pair(i);
        tell();
    }

    void remove(String address) {
        wish.forget(address);
        tell();
    }

    private void tell() {
        main.removeCallbacks(expire);
        main.postDelayed(expire, PATIENCE_MILLIS);
        ProxyService.hold(context);
        if (session != null) {
            wish.tell(session);
        }
        changed();
    }

    /** Switches to another daemon; null = none. */
    void session(HostSession s) {
        session = s;
        if (s != null) {
            wish.tell(s);
        }
    }

    /** Called when the daemon has answered. */
    void answered(long id, String address, String code) {
        boolean pairing = wish.pairs();
        String key = wish.key();
        if (!wish.answered(id, code)) {
            return;
        }
        main.removeCallbacks(expire);
        if (code.equals(RelayWish.DONE)) {
            if (pairing) {
                settings.setRelay(address, key);
            } else {
                settings.forgetRelay(address);
            }
        }
        changed();
    }

    private void changed() {
        if (listener != null) {
            listener.changed();
        }
    }
}
