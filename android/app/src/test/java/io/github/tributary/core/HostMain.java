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
 * each, separated by ";"; traits by spaces), and the daemon's command. The property month = bytes of
 * mobile data in a month.
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
                        (handle, name) -> address,
                        lookups,
                        new HostSession.Listener() {
                            @Override
                            public void wanted(boolean cellular) {
                                System.err.println("wanted: " + cellular);
                            }

                            @Override
                            public void status(Status s) {
                                System.err.println("status: " + s.transfers + " downloads, " + s.links.size() + " links");
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
        Offer offer = new Offer(networks(args[5]), policy, false, Collections.<String>emptySet());
        session.offer(offer.offered(), policy.limits, Net.NO_SIM);
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
        offered.await(); // the daemon runs
        URLConnection c = new URL(args[2]).openConnection(new Proxy(Proxy.Type.HTTP, proxy));
        try (InputStream in = c.getInputStream()) {
            Files.copy(in, Paths.get(args[3]));
        }
        session.stop();
        daemon.stop(20_000);
        lookups.close();
        System.err.println("done");
        System.exit(0); // standard input may stay open
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
