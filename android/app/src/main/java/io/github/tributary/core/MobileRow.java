package io.github.tributary.core;

/** What people are told about mobile data while the system has no such network for the app. */
public enum MobileRow {
    /** There is a network, which has a row of its own, or the phone has no modem. */
    NONE,
    /** The user has not allowed it. */
    NOT_WANTED,
    /** No SIM, or a locked one. */
    NO_SIM,
    AIRPLANE,
    /** The user has switched it off in the system. */
    OFF,
    /** The system's Data Saver is on. */
    DATA_SAVER,
    /** Its limit is used up. */
    SPENT,
    /** The system's Battery Saver is on, and Wi-Fi works. */
    BATTERY_SAVER,
    /** It comes up when something is downloaded. */
    READY,
    /** The system was asked for it a moment ago. */
    COMING,
    /** The system was asked for it a while ago. */
    NOT_COMING;

    /** After this long without a network, people are told what to check. A phone on 3G takes some 5 s. */
    public static final long PATIENCE_MILLIS = 15_000;

    /** What the phone reports. A value. */
    public static final class Phone {
        private final boolean modem;
        private final boolean sim;
        private final boolean airplane;
        private final boolean data;

        /** data: the user has it switched on. */
        public Phone(boolean modem, boolean sim, boolean airplane, boolean data) {
            this.modem = modem;
            this.sim = sim;
            this.airplane = airplane;
            this.data = data;
        }
    }

    /**
     * Chooses the row. saving: Data Saver is on; spent: a limit is used up; askedMillis: since when the system is asked
     * for mobile data, 0 = it is not.
     */
    public static MobileRow of(Offer offer, MobilePolicy policy, Phone phone, boolean saving, boolean spent, long askedMillis, long nowMillis) {
        for (Net n : offer.uses().keySet()) {
            if (n.kind == Net.Kind.CELLULAR) {
                return NONE;
            }
        }
        if (!phone.modem) {
            return NONE;
        }
        if (!policy.mobileAllowed()) {
            return NOT_WANTED;
        }
        if (phone.airplane) {
            return AIRPLANE;
        }
        if (!phone.sim) {
            return NO_SIM;
        }
        if (!phone.data) {
            return OFF;
        }
        if (saving) {
            return DATA_SAVER;
        }
        if (spent) {
            return SPENT;
        }
        if (offer.rests()) {
            return BATTERY_SAVER;
        }
        if (askedMillis == 0) {
            return READY;
        }
        return nowMillis - askedMillis < PATIENCE_MILLIS ? COMING : NOT_COMING;
    }
}
