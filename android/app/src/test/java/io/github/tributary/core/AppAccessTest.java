package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.util.Collections;
import java.util.Set;
import org.junit.Test;

/** Apps are chosen only where the system tells them apart; otherwise the choice is none. */
public class AppAccessTest {
    private static final Set<Integer> ONE = Collections.singleton(10200);

    private static AppAccess.Choice holds(AppAccess.Choice choice, Reach reach, boolean told) {
        return AppAccess.of(choice, ONE, reach, told).choice;
    }

    @Test
    public void nobodyMayWithoutAnApp() {
        assertTrue(AppAccess.NONE.nobody());
        assertTrue(AppAccess.of(AppAccess.Choice.CHOSEN, Collections.<Integer>emptySet(), Reach.VPN, true).nobody());
        assertFalse(AppAccess.of(AppAccess.Choice.CHOSEN, ONE, Reach.VPN, true).nobody());
        assertFalse(AppAccess.of(AppAccess.Choice.ALL, ONE, Reach.SETTING, true).nobody());
    }

    @Test
    public void chosenTakesTheVpn() {
        for (Reach reach : Reach.values()) {
            for (boolean told : new boolean[] {true, false}) {
                boolean works = told && reach == Reach.VPN;
                assertEquals(works ? AppAccess.Choice.CHOSEN : AppAccess.Choice.NONE, holds(AppAccess.Choice.CHOSEN, reach, told));
                assertEquals(AppAccess.Choice.ALL, holds(AppAccess.Choice.ALL, reach, told));
                assertEquals(AppAccess.Choice.NONE, holds(AppAccess.Choice.NONE, reach, told));
            }
        }
        assertEquals(ONE, AppAccess.of(AppAccess.Choice.CHOSEN, ONE, Reach.VPN, true).uids);
        assertEquals(Collections.<Integer>emptySet(), AppAccess.of(AppAccess.Choice.CHOSEN, ONE, Reach.SETTING, true).uids);
    }
}
