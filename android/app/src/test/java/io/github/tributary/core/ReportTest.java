package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.util.Arrays;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** What leaves the phone when a user reports a problem. */
public class ReportTest {
    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    @Test
    public void tellsNotWhereTheUserWas() {
        String[][] lines = {
            {"time=1 level=ERROR msg=x error=\"lookup cdn.example.com: no such host\"", "time=1 level=ERROR msg=x error=\"lookup (name): no such host\""},
            {"time=1 msg=x url=https://user:word@example.com:8443/a?b=c#d next=1", "time=1 msg=x url=(link) next=1"},
            {"time=1 msg=x error=\"dial tcp 203.0.113.9:443: refused\"", "time=1 msg=x error=\"dial tcp (address):443: refused\""},
            {"time=1 msg=x error=\"dial tcp [2001:db8::7]:443: refused\"", "time=1 msg=x error=\"dial tcp [(address)]:443: refused\""},
            {"time=1 msg=x prefix=fe80::1%wlan0", "time=1 msg=x prefix=(address)%wlan0"},
            {"panic: https://example.com/a", "panic: (link)"},
        };
        for (String[] l : lines) {
            assertEquals(l[1], Report.hide(l[0]));
        }
    }

    @Test
    public void leavesWhatHelps() {
        for (String line : new String[] {
            "time=2026-11-23T17:45:01.123Z level=INFO msg=listening proxy=127.0.0.1:8080 admin=\"\" scheduler=confluence",
            "time=2026-11-23T17:45:01.123+01:00 level=INFO msg=\"link found\" link=rmnet_data0 kind=cellular metered=true",
            "time=1 level=WARN msg=x file=rates.json version=1.2.3 proxy=[::1]:8080",
            "goroutine 1 [running]:",
            "github.com/tributary-http/tributary/internal/net/direct.(*racer).order(0xc000102a80, {0x1, 0x2})",
            "\tgithub.com/tributary-http/tributary/internal/net/direct/race.go:118 +0x1c",
            "runtime.gopark(0x1?)",
            "Android 14 (34), Google Pixel 7, arm64-v8a",
        }) {
            assertEquals(line, Report.hide(line));
        }
    }

    @Test
    public void holdsTheEndsOfTheLogs() throws Exception {
        File old = folder.newFile("old");
        File now = folder.newFile("now");
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < 5_000; i++) {
            b.append("line ").append(i).append('\n');
        }
        Files.write(old.toPath(), b.toString().getBytes("UTF-8"));
        Files.write(now.toPath(), "time=1 msg=new\n".getBytes("UTF-8"));
        String text = Report.of(Arrays.asList("Tributary 1"), old, new File(folder.getRoot(), "none"), now);
        assertTrue(text, text.startsWith("Tributary 1\n\nline "));
        assertTrue(text, text.endsWith("\nline 4999\n\ntime=1 msg=new\n"));
        assertFalse("more than an intent may hold", text.length() > 40_000);
    }
}
