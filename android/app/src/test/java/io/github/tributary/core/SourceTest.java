package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import java.util.Arrays;
import java.util.Collections;
import org.json.JSONObject;
import org.junit.Test;

/** What to download, and how to request it. */
public class SourceTest {
    @Test
    public void hasOnlyFieldsThatServersTake() {
        Source s = Source.of("https://example.com/a");
        for (String bad : new String[] {null, "", " ", "a\r\nHost: evil.example", "a\nb", "a\u0000", "\u00fc", "x".repeat(20_000)}) {
            assertEquals(bad, Collections.emptyList(), s.with("Referer", bad).header);
        }
        Source both = s.with("Referer", " https://example.com/page ").with("Cookie", "a=b; c=\"d\"");
        assertEquals(Arrays.asList("Referer: https://example.com/page", "Cookie: a=b; c=\"d\""), both.header);
        assertEquals("all of them together", 1, s.with("Cookie", "x".repeat(10_000)).with("Referer", "x".repeat(10_000)).header.size());
    }

    @Test
    public void isKeptUntilItIsDone() throws Exception {
        String sum = "sha256:" + "0".repeat(64);
        DownloadState s = DownloadState.begin(Source.of("https://example.com/a").verified(sum).with("Cookie", "secret"));
        Source again = DownloadState.parse(new JSONObject(s.in(DownloadState.Phase.LATER).toJson().toString())).source;
        assertEquals("https://example.com/a", again.url);
        assertEquals(sum, again.checksum);
        assertEquals(Arrays.asList("Cookie: secret"), again.header);
        assertEquals("a secret stays for nothing", -1, s.in(DownloadState.Phase.DONE).toJson().toString().indexOf("secret"));
        assertEquals("it begins by itself", DownloadState.Phase.QUEUED, DownloadState.parse(s.in(DownloadState.Phase.QUEUED).toJson()).phase);
    }

    @Test
    public void isOrdered() throws Exception {
        String sum = "sha256:" + "0".repeat(64);
        JSONObject o = new JSONObject(HostMessages.order(DownloadState.begin(Source.of("https://example.com/a").verified(sum).with("Cookie", "a=b"))));
        assertEquals(sum, o.getString("checksum"));
        assertEquals("Cookie: a=b", o.getJSONArray("header").getString(0));
        assertEquals(3, o.length());
    }
}
