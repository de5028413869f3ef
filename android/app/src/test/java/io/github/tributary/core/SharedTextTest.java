package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

/** The texts that other apps share. */
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
        assertEquals("http://a.example/1 https://b.example/2", found(" http://a.example/1\nhttps://b.example/2 http://a.example/1\n"));
        assertEquals("a sentence", "http://a.example/1", found("this http://a.example/1 by https://b.example/2"));
        assertEquals("", found("no link"));
        assertEquals("", found(null));
        StringBuilder many = new StringBuilder();
        for (int i = 0; i < 60; i++) {
            many.append("http://a.example/").append(i).append('\n');
        }
        assertEquals("nobody looks at so many", 1, SharedText.sources(many).size());
    }

    private static String found(CharSequence text) {
        StringBuilder b = new StringBuilder();
        for (Source s : SharedText.sources(text)) {
            b.append(b.length() == 0 ? "" : " ").append(s.url).append(s.checksum.isEmpty() ? "" : " " + s.checksum);
        }
        return b.toString();
    }

    @Test
    public void checksumsBelongToLinks() {
        String a = "aB".repeat(32);
        String b = "0".repeat(128);
        String small = "sha256:" + "ab".repeat(32);
        assertEquals("http://x.example/1 " + small, found("http://x.example/1#sha256=" + a));
        assertEquals("http://x.example/1 sha512:" + b, found("http://x.example/1#SHA-512:" + b));
        assertEquals("a list", "http://x.example/1 " + small + " http://x.example/2 sha512:" + b, found("http://x.example/1 " + a + "\nhttp://x.example/2 sha512:" + b));
        assertEquals("before the link", "http://x.example/1 " + small, found(a + "  http://x.example/1"));
        assertEquals("twice", "http://x.example/1 " + small, found("http://x.example/1 " + a + " http://x.example/1"));
        assertEquals("as sha256sum prints it", "http://x.example/1.iso " + small, found("http://x.example/1.iso\n" + a + "  1.iso"));
        assertEquals("a sentence", "http://x.example/1.iso " + small, found("get http://x.example/1.iso, SHA256: " + a + "."));
        assertEquals("which one?", "http://x.example/1", found("see http://x.example/1: " + a + " or " + b));
        assertEquals("the link's own", "http://x.example/" + a, found("see http://x.example/" + a));
        assertEquals("a place in a page", "http://x.example/1#" + a, found("http://x.example/1#" + a));
        for (String wrong : new String[] {a.substring(1), a + "0", "md5:" + a, "sha512:" + a, "sha256:" + b, "sha256:" + a.replace('a', 'g')}) {
            assertEquals(wrong, "http://x.example/1#" + wrong, found("http://x.example/1#" + wrong).replace(" ", "?"));
        }
    }
}
