package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

/** What other apps share. */
public class SharedTextTest {
    @Test
    public void findsTheUrl() {
        String[][] rows = {
            {"https://example.com/a.iso", "https://example.com/a.iso"},
            {"Look: https://example.com/a.iso!", "https://example.com/a.iso"},
            {"(see http://example.com/a_(b).zip)", "http://example.com/a_(b).zip"},
            {"title\nHTTPS://EXAMPLE.com/x?y=1&z=%20#f", "HTTPS://EXAMPLE.com/x?y=1&z=%20#f"},
            {"\u201chttps://example.com/q\u201d", "https://example.com/q"},
            {"<https://example.com/b>", "https://example.com/b"},
            {"[https://[2001:db8::1]/x]", "https://[2001:db8::1]/x"},
            {"two: http://a.example/1, http://b.example/2", "http://a.example/1"},
            {"ftp://example.com/a", null},
            {"https://", null},
            {"https://...", null},
            {"xhttps://example.com", null},
            {"", null},
            {null, null},
        };
        for (String[] r : rows) {
            assertEquals(String.valueOf(r[0]), r[1], SharedText.url(r[0]));
        }
    }

    @Test
    public void aListOfUrlsIsMeantAsAWhole() {
        assertEquals("[http://a.example/1, https://b.example/2]", SharedText.urls(" http://a.example/1\nhttps://b.example/2 http://a.example/1\n").toString());
        assertEquals("a sentence", "[http://a.example/1]", SharedText.urls("this http://a.example/1 by https://b.example/2").toString());
        assertEquals("[]", SharedText.urls("no link").toString());
        assertEquals("[]", SharedText.urls(null).toString());
        StringBuilder many = new StringBuilder();
        for (int i = 0; i < 60; i++) {
            many.append("http://a.example/").append(i).append('\n');
        }
        assertEquals("nobody looks at so many", 1, SharedText.urls(many).size());
    }
}
