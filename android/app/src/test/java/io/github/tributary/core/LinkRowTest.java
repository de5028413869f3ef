package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.json.JSONException;
import org.json.JSONObject;
import org.junit.Test;

/** Every network is listed, with what is done with it and why. */
public class LinkRowTest {
    private static Net net(String name, Net.Kind kind, boolean validated) {
        return new Net(7, name, kind, Arrays.asList("10.0.0.2/24"), Collections.<String>emptyList(), "", false, validated);
    }

    private static final List<Net> ALL =
            Arrays.asList(
                    net("wlan0", Net.Kind.WIFI, true),
                    net("wlan1", Net.Kind.WIFI, false),
                    net("rmnet0", Net.Kind.CELLULAR, true),
                    net("tun0", Net.Kind.VPN, true));

    private static String rows(List<Net> present, MobilePolicy.Mode mode, boolean consent) throws JSONException {
        Status s = Status.parse(new JSONObject("{'links':[{'name':'wlan0','state':'up','bytes':9},{'name':'gone'}]}"));
        StringBuilder b = new StringBuilder();
        for (LinkRow r : LinkRow.rows(present, new MobilePolicy(mode, consent, 0), s)) {
            b.append(r.net.name).append(' ').append(r.use).append(r.link == null ? "" : " " + r.link.bytes).append("; ");
        }
        return b.toString();
    }

    @Test
    public void tellsWhy() throws JSONException {
        String others = "wlan0 USED 9; wlan1 NOT_VALIDATED; rmnet0 %s; tun0 VPN; ";
        assertEquals(String.format(others, "NOT_WANTED"), rows(ALL, MobilePolicy.Mode.MOBILE_HELPS, false));
        assertEquals(String.format(others, "NOT_WANTED"), rows(ALL, MobilePolicy.Mode.WIFI_ONLY, true));
        assertEquals(String.format(others, "OFFERED"), rows(ALL, MobilePolicy.Mode.MOBILE_HELPS, true));
        assertEquals(String.format(others, "BACKUP"), rows(ALL, MobilePolicy.Mode.MOBILE_BACKUP, true));
        assertEquals("rmnet0 OFFERED; ", rows(ALL.subList(2, 3), MobilePolicy.Mode.MOBILE_BACKUP, true));
        assertEquals("", rows(Collections.<Net>emptyList(), MobilePolicy.Mode.MOBILE_BACKUP, true));
    }

    @Test
    public void waitsForTheDaemon() {
        List<LinkRow> rows = LinkRow.rows(ALL, new MobilePolicy(MobilePolicy.Mode.WIFI_ONLY, false, 0), null);
        assertEquals(LinkRow.Use.OFFERED, rows.get(0).use);
    }
}
