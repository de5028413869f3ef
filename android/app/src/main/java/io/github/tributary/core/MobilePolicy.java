package io.github.tributary.core;

/** What the user allows of networks that may cost money: mobile data, metered Wi-Fi, shared mobile data, satellites. A value. */
public final class MobilePolicy {
    /** How they are used. */
    public enum Mode {
        /** Never. */
        WIFI_ONLY,
        /** Beside Wi-Fi, to be faster. */
        MOBILE_HELPS,
        /** While nothing else works. */
        MOBILE_BACKUP
    }

    public final Mode mode;

    /** The user has agreed to spend. Without it nothing is, whatever the mode. */
    public final boolean consent;

    /** The user has agreed to roaming, too. */
    public final boolean roaming;

    public final Limits limits;

    public MobilePolicy(Mode mode, boolean consent, boolean roaming, Limits limits) {
        this.mode = mode;
        this.consent = consent;
        this.roaming = roaming;
        this.limits = limits;
    }

    /** Whether networks that may cost money may be used at all. */
    public boolean mobileAllowed() {
        return consent && mode != Mode.WIFI_ONLY;
    }
}
