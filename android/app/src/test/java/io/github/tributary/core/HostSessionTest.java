package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import org.json.JSONException;
import org.json.JSONObject;
import org.junit.Test;

/** The conversation with the daemon: docs/APPBRIDGE.md. */
public class HostSessionTest {
    private final List<String> sent = new ArrayList<String>();
    private final List<String> told = new ArrayList<String>();
    private boolean full;

    private final HostSession session =
            new HostSession(
                    sent::add,
                    new HostSession.Resolver() {
                        @Override
                        public List<String> resolve(long handle, String name) throws IOException {
                            switch (name) {
                                case "a.example":
                                    return Arrays.asList("192.0.2.1", "2001:db8::" + handle);
                                case "b.example":
                                    return null;
                                default:
                                    throw new IOException("it rains");
                            }
                        }

                        @Override
                        public int owner(String local, String remote) {
                            if (!remote.equals("127.0.0.1:8080")) {
                                throw new IllegalArgumentException(remote);
                            }
                            return local.equals("127.0.0.1:40123") ? 10200 : HostSession.NOBODY;
                        }
                    },
                    (handle, task) -> {
                        if (full) {
                            throw new RejectedExecutionException();
                        }
                        task.run();
                    },
                    new HostSession.Listener() {
                        @Override
                        public void wanted(boolean cellular) {
                            told.add("wanted " + cellular);
                        }

                        @Override
                        public void answered(long id, String address, String code) {
                            told.add("answered " + id + " " + address + code);
                        }

                        @Override
                        public void status(Status s) {
                            told.add("status " + s.transfers + " " + s.rate() + " " + s.links.get(0).monthlyLeft);
                        }
                    });

    private void said(String json) throws JSONException {
        assertEquals(1, sent.size());
        String line = sent.remove(0);
        assertEquals("a line ends once", line.length() - 1, line.indexOf('\n'));
        assertEquals(new JSONObject(json).toString(), new JSONObject(line).toString());
    }

    @Test
    public void greetsOffersAndStops() throws JSONException {
        session.begin();
        said("{'type':'hello','version':1}");
        Limits limits = new Limits(2_000_000_000L, 100_000_000, 15);
        Set<Net.Trait> free = EnumSet.of(Net.Trait.VALIDATED);
        Set<Net.Trait> metered = EnumSet.of(Net.Trait.VALIDATED, Net.Trait.METERED);
        List<String> none = Collections.emptyList();
        session.offer(
                Arrays.asList(
                        new Net(7, "wlan0", Net.Kind.WIFI, Arrays.asList("10.0.0.2/24"), Arrays.asList("10.0.0.1"), "", Net.NO_SIM, free),
                        new Net(1L << 40, "rmnet0", Net.Kind.CELLULAR, Arrays.asList("10.1.0.2/32"), none, "64:ff9b::/96", 3, metered)),
                limits,
                5,
                AppAccess.of(AppAccess.Choice.CHOSEN, Collections.singleton(10200), Reach.VPN, true));
        said(
                "{'type':'links','links':[{'name':'wlan0','handle':7,'kind':'wifi','addrs':['10.0.0.2/24'],'dns':['10.0.0.1'],"
                        + "'metered':false,'validated':true},{'name':'rmnet0','handle':1099511627776,'kind':'cellular',"
                        + "'addrs':['10.1.0.2/32'],'dns':[],'nat64':'64:ff9b::/96','metered':true,'validated':true,'account':'cellular-3'}],"
                        + "'accounts':[{'name':'cellular-5','monthly_bytes':2000000000,'daily_bytes':100000000,'first_day':15},"
                        + "{'name':'cellular-3','monthly_bytes':2000000000,'daily_bytes':100000000,'first_day':15}],'cellular':'cellular-5',"
                        + "'apps':{'metered':'chosen','uids':[10200]}}");
        session.stop();
        said("{'type':'stop'}");
    }

    @Test
    public void answersQuestions() throws JSONException {
        session.heard("{\"type\":\"resolve\",\"id\":1,\"handle\":5,\"name\":\"a.example\"}");
        said("{'type':'resolved','id':1,'addrs':['192.0.2.1','2001:db8::5']}");
        session.heard("{\"type\":\"resolve\",\"id\":2,\"handle\":5,\"name\":\"b.example\"}");
        said("{'type':'resolved','id':2,'error':'not_found'}");
        session.heard("{\"type\":\"resolve\",\"id\":3,\"handle\":5,\"name\":\"c.example\"}");
        said("{'type':'resolved','id':3,'error':'it rains'}");
        full = true;
        session.heard("{\"type\":\"resolve\",\"id\":4,\"handle\":5,\"name\":\"a.example\"}");
        said("{'type':'resolved','id':4,'error':'too many lookups at once'}");
    }

    @Test
    public void saysWhoseAConnectionIs() throws JSONException {
        session.heard("{\"type\":\"owner\",\"id\":1,\"local\":\"127.0.0.1:40123\",\"remote\":\"127.0.0.1:8080\"}");
        said("{'type':'owned','id':1,'uid':10200}");
        session.heard("{\"type\":\"owner\",\"id\":2,\"local\":\"127.0.0.1:1\",\"remote\":\"127.0.0.1:8080\"}");
        said("{'type':'owned','id':2}");
        session.heard("{\"type\":\"owner\",\"id\":3,\"local\":\"127.0.0.1:1\",\"remote\":\"nonsense\"}");
        said("{'type':'owned','id':3}");
        full = true;
        session.heard("{\"type\":\"owner\",\"id\":4,\"local\":\"127.0.0.1:40123\",\"remote\":\"127.0.0.1:8080\"}");
        said("{'type':'owned','id':4}");
    }

    /** A resolver that cannot tell apps apart says so. */
    @Test
    public void nobodyIsKnownByDefault() throws Exception {
        HostSession.Resolver names = (handle, name) -> null;
        assertEquals(HostSession.NOBODY, names.owner("127.0.0.1:1", "127.0.0.1:2"));
    }

    @Test
    public void wantsRelays() throws JSONException {
        session.pair(7, Invitation.in(InvitationTest.LINK));
        said("{'type':'pair','id':7,'link':'" + InvitationTest.LINK + "'}");
        session.gateway("token");
        said("{'type':'gateway','token':'token'}");
        session.forget(8, "relay.example.com:443");
        said("{'type':'forget','id':8,'address':'relay.example.com:443'}");
        session.heard("{\"type\":\"paired\",\"id\":7,\"address\":\"relay.example.com:443\"}");
        session.heard("{\"type\":\"forgotten\",\"id\":8,\"code\":\"not_saved\",\"error\":\"x\"}");
        assertEquals(Arrays.asList("answered 7 relay.example.com:443", "answered 8 not_saved"), told);
    }

    @Test
    public void tellsAndIgnores() throws JSONException {
        session.heard("{\"type\":\"want\",\"cellular\":true}");
        session.heard("{\"type\":\"of later\",\"x\":1}");
        session.heard(
                "{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"wlan0\",\"goodput_bytes_per_second\":1500.5,"
                        + "\"monthly_left_bytes\":9}],\"transfers\":[{}]}}");
        session.heard("{\"type\":\"status\",\"status\":{\"links\":[{\"name\":\"wlan0\",\"goodput_bytes_per_second\":7}]}}");
        assertEquals(Arrays.asList("wanted true", "status 1 1500 9", "status 0 0 -1"), told);
        assertThrows(JSONException.class, () -> session.heard("{"));
        assertThrows(JSONException.class, () -> session.heard("{}"));
        assertEquals(0, sent.size());
    }
}
