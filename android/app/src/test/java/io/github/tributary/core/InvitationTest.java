package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;

import org.junit.Test;

/** A relay's link is recognized by its form, and its secret is not printed. */
public class InvitationTest {
    private static final String KEY = "q3fX0123456789abcdefghijklmnopqrstuvwxyz-_0";
    private static final String TOKEN = "AbCdEfGhIjKlMnOpQrStUvWxYz012345";
    static final String LINK = "tributary://relay.example.com:443#" + KEY + "." + TOKEN;

    @Test
    public void isFoundInTexts() {
        for (String text : new String[] {LINK, " " + LINK + "\n", "Scan this: " + LINK + ".", "<" + LINK + ">", LINK.replace("tributary", "TRIBUTARY")}) {
            Invitation i = Invitation.in(text);
            assertEquals(text, "relay.example.com:443", i.address);
            assertEquals("relay.example.com", i.host);
            assertEquals(KEY, i.key);
            assertEquals(LINK, i.link());
        }
        assertEquals("[2001:db8::1]:8443", Invitation.in("tributary://[2001:db8::1]:8443#" + KEY + "." + TOKEN).address);
    }

    @Test
    public void othersAreNone() {
        String[] others = {
            null, "", "https://example.com/#" + KEY + "." + TOKEN, LINK.substring(0, LINK.length() - 1), LINK + "x", LINK.replace(":443", ""),
            LINK.replace("#", "/#"), LINK.replace("relay", "user@relay"), LINK.replace("#" + KEY, "#"), LINK.replace(".com:", ".com :"),
            LINK.replace("relay", "\u202erelay"), LINK.replace("relay", "your\u00a0bank"), LINK.replace("relay", "r\u0435lay"),
            LINK.replace("relay", String.join("", java.util.Collections.nCopies(254, "a")))
        };
        for (String text : others) {
            assertNull(text, Invitation.in(text));
        }
    }

    @Test
    public void theSecretDoesNotPrint() {
        String printed = Invitation.in(LINK).toString();
        assertEquals("tributary://relay.example.com:443#...", printed);
        assertFalse(printed.contains(TOKEN) || printed.contains(KEY));
    }
}
