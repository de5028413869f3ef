package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

/** The names of files. */
public class FileNameTest {
    @Test
    public void names() {
        String[][] rows = {
            {"https://example.com/a/b.iso?x=/c", "b.iso"},
            {"https://example.com/a%20b.iso", "a b.iso"},
            {"https://example.com/..%2f..%2fetc%2fpasswd", "passwd"},
            {"https://example.com/%2e%2e", "download"},
            {"https://example.com/.hidden", "hidden"},
            {"https://example.com/a%00b%0a%22c", "a_b__c"},
            {"https://example.com/\u00e4.txt", "\u00e4.txt"},
            {"https://example.com/", "download"},
            {"https://example.com", "download"},
            {"no url at all", "no url at all"},
            {"https://example.com/%", "download"},
        };
        for (String[] r : rows) {
            assertEquals(r[0], r[1], FileName.of(r[0]));
        }
        String last = FileName.of("https://example.com/" + "x".repeat(300) + ".tar.gz");
        assertEquals(200, last.length());
        assertEquals("xx.tar.gz", last.substring(191));
        last = FileName.of("https://example.com/" + "\u6f22".repeat(100) + ".zip");
        assertEquals(65 * 3 + 4, last.getBytes(java.nio.charset.StandardCharsets.UTF_8).length);
    }
}
