package io.github.tributary.core;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.URL;
import java.net.URLConnection;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/**
 * What the app does, without a phone: it starts the daemon, is its host, and another app downloads a file through it. A test in Go
 * (lab/e2e) stands between the two, for what a JVM cannot do: take sockets out of messages. Lines of the daemon come in
 * on standard input, lines for it go out on standard output.
 *
 * <p>Arguments: folder, port of the proxy, URL, file, the address of its host, the networks ("handle,name,kind,address/bits,traits"
 * each, separated by ";"; traits by spaces), and the daemon's command. Properties: month = bytes of mobile data in a month; apps = which
 * other apps may use it (of AppAccess.Choice, with the user ID that is chosen after a colon); while = instead of a download, go on until
 * this file is there; link = that of a relay, with which it pairs first.
 */
public final class HostMain {
    private HostMain() {}

    public static void main(String[] args) throws Exception {
        File dir = new File(args[0]);
        InetSocketAddress proxy = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[1]));
        final List<String> address = Collections.singletonList(args[4]);
        final PrintStream out = System.out;
        CountDownLatch offered = new CountDownLatch(1);
        LookupPools lookups = new LookupPools();
        HostSession session =
                new HostSession(
                        line -> {
                            out.print(line);
                            out.flush();
                        },
                        new HostSession.Resolver() {
                            @Override
                            public List<String> resolve(long handle, String name) {
                                return address;
                            }

                            @Override
                            public int owner(String local, String remote) throws IOException {
                                return ownerOf(local, remote);
                            }
                        },
                        lookups,
                        new HostSession.Listener() {
                            @Override
                            public void wanted(boolean cellular) {
                                System.err.println("wanted: " + cellular);
                            }

                            @Override
                            public void answered(long id, String address, String code) {
                                System.err.println("answered: " + id + " " + address + code);
                            }

                            @Override
                            public void status(Status s) {
                                StringBuilder lanes = new StringBuilder();
                                for (RelayState.Lane l : s.relay == null ? Collections.<RelayState.Lane>emptyList() : s.relay.lanes) {
                                    lanes.append(l.up ? " " + l.link : "");
                                }
                                System.err.println("status: " + s.transfers + " downloads, " + s.links.size() + " links, lanes" + lanes);
                                offered.countDown();
                            }
                        });
        DaemonProcess daemon =
                new DaemonProcess(
                        Arrays.asList(args).subList(6, args.length),
                        System.getenv(),
                        dir,
                        new File(dir, "log"),
                        new DaemonProcess.Listener() {
                            @Override
                            public void started() {
                                System.err.println("started");
                            }

                            @Override
                            public void died(int code, long waitMillis) {
                                System.err.println("died: " + code);
                            }
                        });
        daemon.start();
        session.begin();
        long month = Long.getLong("month");
        MobilePolicy policy = new MobilePolicy(MobilePolicy.Mode.MOBILE_HELPS, true, false, new Limits(month, 0, 1));
        Offer offer = new Offer(networks(args[5]), policy, false, false, Collections.<String>emptySet());
        String[] apps = System.getProperty("apps", "ALL").split(":");
        Set<Integer> chosen = apps.length == 1 ? Collections.emptySet() : Collections.singleton(Integer.parseInt(apps[1]));
        AppAccess access = AppAccess.of(AppAccess.Choice.valueOf(apps[0]), chosen, Reach.VPN, true);
        session.offer(offer.offered(), policy.limits, Net.NO_SIM, access);
        Thread hearing =
                new Thread(
                        () -> {
                            try {
                                BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
                                for (String line = in.readLine(); line != null; line = in.readLine()) {
                                    session.heard(line);
                                }
                            } catch (IOException | org.json.JSONException e) {
                                System.err.println("heard: " + e);
                            }
                        });
        hearing.setDaemon(true);
        hearing.start();
        offered.await(); // the daemon is running
        if (System.getProperty("link") != null) {
            session.pair(7, Invitation.in(System.getProperty("link")));
        }
        if (System.getProperty("while") != null) {
            await(new File(System.getProperty("while")));
            end(session, daemon, lookups);
        }
        URLConnection c = new URL(args[2]).openConnection(new Proxy(Proxy.Type.HTTP, proxy));
        try (InputStream in = c.getInputStream()) {
            Files.copy(in, Paths.get(args[3]));
        }
        end(session, daemon, lookups);
    }

    private static void end(HostSession session, DaemonProcess daemon, LookupPools lookups) throws Exception {
        session.stop();
        daemon.stop(20_000);
        lookups.close();
        System.err.println("done");
        System.exit(0); // standard input may stay open
    }

    private static void await(File there) throws InterruptedException {
        for (int i = 0; !there.exists() && i < 6_000; i++) {
            Thread.sleep(20);
        }
    }

    /**
     * Returns what the system reports on a phone: the kernel's list of connections has the user ID of each (proc(5)).
     */
    private static int ownerOf(String local, String remote) throws IOException {
        String ends = kernels(local) + " " + kernels(remote) + " ";
        for (String line : Files.readAllLines(Paths.get("/proc/self/net/tcp"))) {
            int at = line.indexOf(ends);
            if (at >= 0) {
                return Integer.parseInt(line.substring(at + ends.length()).trim().split("\\s+")[4]);
            }
        }
        return HostSession.NOBODY;
    }

    /** Returns "127.0.0.1:80" in the kernel's form. */
    private static String kernels(String address) {
        String[] f = address.split("[.:]");
        StringBuilder b = new StringBuilder();
        for (int i = 3; i >= 0; i--) {
            b.append(String.format("%02X", Integer.parseInt(f[i])));
        }
        return b + ":" + String.format("%04X", Integer.parseInt(f[4]));
    }

    private static List<Net> networks(String text) {
        NetworkTable table = new NetworkTable();
        for (String n : text.split(";")) {
            String[] f = n.split(",");
            long handle = Long.parseLong(f[0]);
            Net.Kind kind = Net.Kind.valueOf(f[2]);
            table.properties(handle, f[1], Collections.singletonList(f[3]), Collections.<String>emptyList(), "", false);
            Set<Net.Trait> traits = EnumSet.noneOf(Net.Trait.class);
            for (String t : f[4].split(" ")) {
                traits.add(Net.Trait.valueOf(t));
            }
            table.capabilities(handle, kind, Net.NO_SIM, traits);
        }
        return table.snapshot();
    }
}
