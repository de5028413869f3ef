package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import org.json.JSONObject;
import org.junit.Test;

/** What the daemon reports to the app. */
public class StatusTest {
    private static Status of(String running) throws Exception {
        return Status.parse(new JSONObject("{'links':[{'name':'wlan0','goodput_bytes_per_second':7},{'name':'rmnet0','goodput_bytes_per_second':3}]" + running + "}"));
    }

    private static Status states(String wifi, String mobile) throws Exception {
        return Status.parse(new JSONObject("{'links':[{'name':'wifi','state':'" + wifi + "'},{'name':'lte','state':'" + mobile + "'}]}"));
    }

    @Test
    public void aPauseIsNotSilence() throws Exception {
        assertEquals("[]", states("up", "up").silent(null).toString());
        assertEquals("[]", states("suspect", "up").silent(null).toString());
        assertEquals("[]", states("suspect", "up").silent(states("up", "suspect")).toString());
        assertEquals("[wifi]", states("suspect", "up").silent(states("suspect", "up")).toString());
        assertEquals("[wifi]", states("banned", "suspect").silent(states("up", "up")).toString());
        assertEquals("it is not known yet whether it is back", "[wifi]", states("probing", "up").silent(states("up", "up")).toString());
    }

    @Test
    public void theRelayHasALaneForEachNetwork() throws Exception {
        assertNull(of("").relay);
        RelayState r =
                of(",'relay':{'address':'a:443','refusal':'full','tunnels':2,'lanes':["
                                + "{'link':'wlan0','up':true,'rtt_seconds':0.02},{'link':'rmnet0','up':false,'failure':'x','code':'wrong_key'}]}")
                        .relay;
        assertEquals("a:443", r.address);
        assertTrue(r.refuses);
        assertEquals(2, r.lanes.size());
        assertTrue(r.lanes.get(0).up && r.lanes.get(0).link.equals("wlan0") && r.lanes.get(0).code.isEmpty());
        assertTrue(!r.lanes.get(1).up && r.lanes.get(1).code.equals("wrong_key"));
        assertFalse(of(",'relay':{'address':'a:443','lanes':[]}").relay.refuses);
    }

    @Test
    public void tunnelsCountLikeDownloads() throws Exception {
        assertEquals(0, of("").transfers);
        assertEquals(0, of("").rate());
        assertEquals(2, of(",'undivided_running':2").transfers);
        assertEquals(10, of(",'undivided_running':2").rate());
        assertEquals(3, of(",'undivided_running':2,'transfers':[{}]").transfers);
    }
}
