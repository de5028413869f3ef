package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.json.JSONObject;
import org.junit.Test;

/** How fast things are, and which network brought what. */
public class RatesTest {
    private static List<LinkRow> rows(long wifi, long mobile) throws Exception {
        Net w = new Net(1, "wlan0", Net.Kind.WIFI, Arrays.asList("10.0.0.1/24"), Collections.<String>emptyList(), "", Net.NO_SIM, EnumSet.of(Net.Trait.VALIDATED));
        Net m = new Net(2, "rmnet0", Net.Kind.CELLULAR, Arrays.asList("10.1.0.1/24"), Collections.<String>emptyList(), "", 1, EnumSet.of(Net.Trait.VALIDATED));
        MobilePolicy policy = new MobilePolicy(MobilePolicy.Mode.MOBILE_HELPS, true, false, new Limits(0, 0, 1));
        Offer offer = new Offer(Arrays.asList(w, m), policy, false, false, Collections.<String>emptySet());
        String link = "{\"name\":\"%s\",\"state\":\"up\",\"goodput_bytes_per_second\":%d}";
        String links = "[" + String.format(link, "wlan0", wifi) + "," + String.format(link, "rmnet0", mobile) + "]";
        return LinkRow.rows(offer, Status.parse(new JSONObject("{\"links\":" + links + "}")));
    }

    @Test
    public void theLastMinute() throws Exception {
        RateHistory h = new RateHistory();
        assertTrue(h.now(0).isEmpty() && h.points(0).isEmpty());
        for (int i = 0; i < 100; i++) {
            h.add(i * 1000L, rows(i, 2 * i));
        }
        Map<Net.Kind, long[]> points = h.points(99_000);
        assertEquals("the oldest", 40, points.get(Net.Kind.WIFI)[0]);
        assertEquals("now", 198, points.get(Net.Kind.CELLULAR)[RateHistory.SECONDS - 1]);
        assertEquals(Long.valueOf(99), h.now(99_900).get(Net.Kind.WIFI));
    }

    @Test
    public void whatNobodyReportsIsOver() throws Exception {
        RateHistory h = new RateHistory();
        h.add(10_000, rows(5, 0));
        assertEquals(1 + 1, h.now(12_000).size());
        assertTrue("a rate of some time ago is shown as today's", h.now(13_000).isEmpty());
        long[] line = h.points(30_000).get(Net.Kind.WIFI);
        assertEquals(5, line[RateHistory.SECONDS - 1 - 20]);
        assertEquals(0, line[RateHistory.SECONDS - 1]);
        assertTrue("more than a minute ago", h.points(80_000).isEmpty());
    }

    @Test
    public void thePaceOfTheLastSeconds() {
        Pace p = new Pace();
        assertEquals(-1, p.rate(0));
        p.add(0, 1000);
        assertEquals(-1, p.rate(10_000));
        p.add(100, 9000);
        assertEquals("too short a time to tell", -1, p.rate(100));
        for (int i = 1; i <= 20; i++) {
            p.add(i * 1000L, 9000 + i * 100);
        }
        assertEquals(100, p.rate(20_000));
        assertEquals(50, p.secondsLeft(20_000, 16_000));
        assertEquals("no size, no end", -1, p.secondsLeft(20_000, -1));
        assertTrue("a stall is not seen", p.rate(25_000) <= 50);
        p.add(21_000, 0); // started over
        assertEquals(-1, p.rate(22_000));
        p.add(22_000, 500);
        assertEquals(500, p.rate(22_000));
        p.reset();
        assertEquals(-1, p.secondsLeft(22_000, 1000));
    }

    @Test
    public void sharesAddUp() throws Exception {
        Shares s = Shares.NONE.plus(Net.Kind.WIFI, 1).plus(Net.Kind.CELLULAR, 1).plus(Net.Kind.ETHERNET, 1);
        int sum = 0;
        for (int percent : s.percent().values()) {
            assertTrue(percent == 33 || percent == 34);
            sum += percent;
        }
        assertEquals(100, sum);
        assertTrue(Shares.NONE.percent().isEmpty());
        Shares more = s.plus(Shares.NONE.plus(Net.Kind.WIFI, 97));
        assertEquals(98, more.of(Net.Kind.WIFI));
        assertEquals(100, Shares.parse(new JSONObject(more.toJson().toString())).total());
        assertEquals(0, Shares.parse(null).total());
    }

    /** The shares of a download outlive its fills and the process. */
    @Test
    public void aDownloadKeepsItsShares() throws Exception {
        DownloadState s = DownloadState.begin("https://example.com/a").with("/f").with(Shares.NONE.plus(Net.Kind.CELLULAR, 7));
        assertEquals(7, s.wanted().brought.of(Net.Kind.CELLULAR));
        assertEquals(7, DownloadState.parse(s.toJson()).brought.of(Net.Kind.CELLULAR));
        assertEquals("its bytes are gone", 0, s.emptied().brought.total());
    }
}
