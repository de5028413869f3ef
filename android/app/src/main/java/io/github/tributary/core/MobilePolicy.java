package io.github.tributary.core;

import java.util.ArrayList;
import java.util.List;

/** What the user allows of mobile data. A value. */
public final class MobilePolicy {
    /** How mobile data is used. */
    public enum Mode {
        /** Never. */
        WIFI_ONLY,
        /** Beside Wi-Fi, to be faster. */
        MOBILE_HELPS,
        /** While there is nothing else. */
        MOBILE_BACKUP
    }

    /** The account that all mobile networks are counted on: their names change. */
    public static final String ACCOUNT = "cellular";

    public final Mode mode;

    /** The user has agreed to spend mobile data. Without it there is none, whatever the mode. */
    public final boolean consent;

    /** Bytes in a calendar month; 0 = no limit. */
    public final long monthlyBytes;

    public MobilePolicy(Mode mode, boolean consent, long monthlyBytes) {
        if (monthlyBytes < 0) {
            throw new IllegalArgumentException("monthlyBytes " + monthlyBytes);
        }
        this.mode = mode;
        this.consent = consent;
        this.monthlyBytes = monthlyBytes;
    }

    /** The networks that the daemon may use, of those there are. */
    public List<Net> offer(List<Net> all) {
        List<Net> others = new ArrayList<Net>();
        List<Net> mobile = new ArrayList<Net>();
        for (Net n : all) {
            if (n.usable()) {
                (n.kind == Net.Kind.CELLULAR ? mobile : others).add(n);
            }
        }
        if (mobileAllowed() && (mode == Mode.MOBILE_HELPS || others.isEmpty())) {
            others.addAll(mobile);
        }
        return others;
    }

    /** Whether mobile data may be used at all. */
    public boolean mobileAllowed() {
        return consent && mode != Mode.WIFI_ONLY;
    }

    /**
     * Whether the system is to be asked for mobile data beside Wi-Fi, which costs battery: only while the daemon has a use
     * for it. As a backup it comes by itself when Wi-Fi goes.
     */
    public boolean request(boolean wanted) {
        return wanted && mobileAllowed() && mode == Mode.MOBILE_HELPS;
    }
}
