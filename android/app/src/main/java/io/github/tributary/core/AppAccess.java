package io.github.tributary.core;

import java.util.Collections;
import java.util.Set;
import java.util.TreeSet;

/** Which other apps may use networks that cost, by way of the proxy. A value. */
public final class AppAccess {
    /** What the user wants. */
    public enum Choice {
        NONE("none"),
        /** Some apps, which takes the way on which the system says whose a connection is. */
        CHOSEN("chosen"),
        ALL("all");

        /** The word of docs/APPBRIDGE.md. */
        public final String word;

        Choice(String word) {
            this.word = word;
        }
    }

    public static final AppAccess NONE = new AppAccess(Choice.NONE, Collections.<Integer>emptySet());

    public final Choice choice;

    /** The user IDs of those that are chosen. */
    public final Set<Integer> uids;

    private AppAccess(Choice choice, Set<Integer> uids) {
        this.choice = choice;
        this.uids = uids;
    }

    /** Whether no app may. */
    public boolean nobody() {
        return choice == Choice.NONE || choice == Choice.CHOSEN && uids.isEmpty();
    }

    /**
     * What holds of a choice. The system tells only the app whose VPN is on whose a connection is, from Android 10 on: by another way
     * nobody is chosen.
     */
    public static AppAccess of(Choice choice, Set<Integer> uids, Reach reach, boolean told) {
        if (choice == Choice.ALL) {
            return new AppAccess(choice, Collections.<Integer>emptySet());
        }
        if (choice != Choice.CHOSEN || reach != Reach.VPN || !told) {
            return NONE;
        }
        return new AppAccess(choice, Collections.unmodifiableSet(new TreeSet<Integer>(uids)));
    }
}
