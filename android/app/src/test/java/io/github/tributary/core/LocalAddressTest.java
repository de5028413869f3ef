package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** The address that a player gets in place of an https URL. */
public class LocalAddressTest {
    private static String of(String url) {
        return LocalAddress.of("127.0.0.1:8081", "TOKEN", url);
    }

    @Test
    public void httpsHasOne() {
        String at = "http://127.0.0.1:8081/TOKEN/https/";
        assertEquals(at + "example.com/a/b%20c.m3u8?x=1&y=%2F", of("https://Example.COM/a/b%20c.m3u8?x=1&y=%2F#part"));
        assertEquals(at + "example.com:8443/", of("HTTPS://example.com:8443"));
        assertEquals(at + "[2001:db8::1]/x", of("https://[2001:db8::1]/x"));
    }

    @Test
    public void othersHaveNone() {
        for (String url : new String[] {"http://example.com/", "https://user:secret@example.com/", "https:///x", "ftp://example.com/", "https://exa mple.com/", ""}) {
            assertNull(url, of(url));
        }
    }

    @Test
    public void tokensAreLongAndNew() {
        assertTrue(LocalAddress.newToken().matches("[A-Za-z0-9_-]{24}"));
        assertNotEquals(LocalAddress.newToken(), LocalAddress.newToken());
    }
}
