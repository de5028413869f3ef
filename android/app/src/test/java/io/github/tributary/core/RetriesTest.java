package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** A download that broke off resumes by itself, as long as that is useful. */
public class RetriesTest {
    private final Retries retries = new Retries();

    @Test
    public void waitsLongerEachTime() {
        long[] want = {500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000};
        for (long w : want) {
            assertEquals(w, retries.after(true, 10));
        }
        assertEquals("bytes came meanwhile", 500, retries.after(true, 11));
        assertEquals(1000, retries.after(true, 11));
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
        for (long w = r.after(true, have); w >= 0; w = r.after(true, have)) {
            waited += w;
        }
        return waited;
    }

    @Test
    public void takesNoForAnAnswer() {
        assertEquals(-1, retries.after(false, 10));
    }
}
