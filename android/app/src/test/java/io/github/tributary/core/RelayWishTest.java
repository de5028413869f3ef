package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.Test;

/** The user's wish for a relay is sent to each daemon until one has answered. */
public class RelayWishTest {
    private final RelayWish wish = new RelayWish();
    private final List<String> told = new ArrayList<String>();
    private final RelayWish.Daemon daemon =
            new RelayWish.Daemon() {
                @Override
                public void pair(long id, Invitation i) {
                    told.add("pair " + id + " " + i.address);
                }

                @Override
                public void forget(long id, String address) {
                    told.add("forget " + id + " " + address);
                }
            };

    @Test
    public void isToldUntilItIsAnswered() {
        wish.tell(daemon);
        assertFalse(wish.open());
        wish.pair(Invitation.in(InvitationTest.LINK));
        wish.tell(daemon);
        wish.tell(daemon); // another daemon: the first died
        assertTrue(wish.open() && wish.pairs());
        assertNull(wish.end());
        assertTrue(wish.answered(1, RelayWish.DONE));
        wish.tell(daemon);
        assertFalse(wish.open());
        assertEquals(RelayWish.DONE, wish.end());
        assertEquals(Arrays.asList("pair 1 relay.example.com:443", "pair 1 relay.example.com:443"), told);
    }

    @Test
    public void onlyTheLastOneCounts() {
        wish.pair(Invitation.in(InvitationTest.LINK));
        wish.forget("relay.example.com:443");
        assertFalse(wish.pairs());
        wish.tell(daemon);
        assertEquals(Arrays.asList("forget 2 relay.example.com:443"), told);
        assertFalse("that is of the first", wish.answered(1, "refused"));
        assertTrue(wish.open());
        assertTrue(wish.answered(2, "not_saved"));
        assertFalse("once", wish.answered(2, ""));
        assertEquals("not_saved", wish.end());
        wish.expire();
        assertEquals("it had an answer", "not_saved", wish.end());
    }

    @Test
    public void endsWithoutAnAnswer() {
        wish.pair(Invitation.in(InvitationTest.LINK));
        wish.expire();
        assertFalse(wish.open());
        assertEquals(RelayWish.NO_ANSWER, wish.end());
        wish.tell(daemon);
        assertEquals("the secret is gone", 0, told.size());
    }
}
