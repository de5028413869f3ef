package io.github.tributary.core;

import java.util.Collections;
import java.util.Set;
import java.util.TreeSet;

/** Which other apps may use networks that cost money through the proxy. A value. */
public final class AppAccess {
    /** What the user wants. */
    public enum Choice {
        NONE("none"),
        /** Some apps. This needs the VPN, with which the system reports which app owns a connection. */
        CHOSEN("chosen"),
        ALL("all");

        /** The word in docs/APPBRIDGE.md. */
        public final String word;

        Choice(String word) {
            this.word = word;
        }
    }

    public static final AppAccess NONE = new AppAccess(Choice.NONE, Collections.<Integer>emptySet());

    public final Choice choice;

    /** The user IDs of the chosen apps. */
    public final Set<Integer> uids;

    private AppAccess(Choice choice, Set<Integer> uids) {
        this.choice = choice;
        this.uids = uids;
    }

    /** Returns whether no app may use them. */
    public boolean nobody() {
        return choice == Choice.NONE || choice == Choice.CHOSEN && uids.isEmpty();
    }

    /**
     * Returns the access that results from a choice. The system reports which app owns a connection only to the app
     * whose VPN is active, from Android 10 on: otherwise no app is chosen.
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
