package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import org.junit.Test;

/** What broke off goes on by itself, as long as that is of use. */
public class RetriesTest {
    private final Retries retries = new Retries();
    private final IOException broken = new EOFException();

    @Test
    public void waitsLongerEachTime() {
        long[] want = {500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000};
        for (long w : want) {
            assertEquals(w, retries.after(broken, 10));
        }
        assertEquals("bytes came meanwhile", 500, retries.after(broken, 11));
        assertEquals(1000, retries.after(broken, 11));
    }

    @Test
    public void givesUp() {
        long waited = patience(10);
        assertTrue(waited + " ms", waited >= 600_000 && waited <= 630_000);
        waited = patience(0);
        assertTrue("before the first byte: " + waited + " ms", waited >= 30_000 && waited <= 60_000);
    }

    private long patience(long have) {
        long waited = 0;
        Retries r = new Retries();
        for (long w = r.after(broken, have); w >= 0; w = r.after(broken, have)) {
            waited += w;
        }
        return waited;
    }

    @Test
    public void takesNoForAnAnswer() {
        for (int status : new int[] {0, 206, 400, 403, 404, 410, 501, 505}) {
            assertEquals("" + status, -1, new Retries().after(new Download.Refused(status, ""), 0));
        }
        for (int status : new int[] {408, 429, 500, 502, 503, 504}) {
            assertEquals("" + status, 500, new Retries().after(new Download.Refused(status, ""), 0));
        }
    }
}
