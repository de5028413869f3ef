package io.github.tributary.core;

/**
 * What the user allows for networks that may cost money: mobile data, metered Wi-Fi, shared mobile data, satellites. A
 * value.
 */
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

    /** Whether the user agreed to spend money. Otherwise nothing is spent, whatever the mode. */
    public final boolean consent;

    /** Whether the user agreed to roaming, too. */
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
