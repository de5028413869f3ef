package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.FileDescriptor;
import java.io.IOException;
import java.io.InputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.json.JSONException;
import org.json.JSONObject;
import org.junit.Before;
import org.junit.Test;

/** The messages about files between the app and the daemon: docs/APPBRIDGE.md, fetch. */
public class FetchesTest {
    private final BlockingQueue<String> sent = new LinkedBlockingQueue<String>();
    private final List<String> steps = new CopyOnWriteArrayList<String>();
    private final Fetches fetches = new Fetches();
    private final PipedOutputStream daemon = new PipedOutputStream();
    private final FileDescriptor file = new FileDescriptor();
    private volatile String handed;
    private FileDescriptor handedFile;
    private Runnable whenHanded = () -> {};
    private int stops;

    private final Fetches.Connection connection =
            new Fetches.Connection() {
                private final PipedInputStream in = new PipedInputStream();

                @Override
                public void hand(String line, FileDescriptor fd) throws IOException {
                    in.connect(daemon);
                    whenHanded.run();
                    handedFile = fd;
                    handed = line;
                }

                @Override
                public InputStream input() {
                    return in;
                }

                @Override
                public void stop() {
                    stops++;
                }
            };

    @Before
    public void session() {
        fetches.session(new HostSession(sent::add, (handle, name) -> null, (handle, task) -> task.run(), null));
    }

    private Fetcher.Fill fill() throws Fetcher.Failed {
        DownloadState from = DownloadState.begin("https://example.com/a").at(new Fetcher.Step("", new Version("\"v\"", "m", 9, "p"), 7, 5, Shares.NONE));
        return fetches.fill(from, file, s -> steps.add(s.name + " " + s.bytes + " (" + s.kept + ") of " + s.version.size + " " + s.version.validator + " " + s.version.mark + " " + s.version.place));
    }

    /** Connects for the order, sends lines, and hangs up. */
    private void daemonSays(String... lines) throws Exception {
        String asked = sent.poll(20, TimeUnit.SECONDS);
        JSONObject m = new JSONObject(asked);
        assertEquals("fetch", m.getString("type"));
        Thread serving =
                new Thread(
                        () -> {
                            try {
                                fetches.serve(m.optLong("id"), connection);
                            } catch (IOException e) {
                                throw new IllegalStateException(e);
                            }
                        });
        serving.start();
        for (int i = 0; i < 2000 && handed == null && serving.isAlive(); i++) {
            Thread.sleep(5);
        }
        for (String line : lines) {
            daemon.write((line + "\n").getBytes("UTF-8"));
        }
        daemon.close();
        serving.join();
    }

    @Test(timeout = 30_000)
    public void fills() throws Exception {
        Fetcher.Fill f = fill();
        daemonSays(
                "{\"type\":\"at\",\"name\":\"n\",\"bytes\":7,\"kept\":6,\"size\":9,\"validator\":\"\\\"v\\\"\",\"mark\":\"m\",\"place\":\"p\"}",
                "{\"type\":\"of later\"}",
                "{\"type\":\"at\",\"bytes\":9}",
                "{\"type\":\"done\"}");
        assertTrue(f.await());
        assertEquals("[n 7 (6) of 9 \"v\" m p,  9 (0) of -1   ]", steps.toString());
        assertEquals(
                new JSONObject("{'url':'https://example.com/a','have':5,'validator':'\"v\"','mark':'m','size':9,'place':'p'}").toString(),
                new JSONObject(handed).toString());
        assertSame(file, handedFile);
    }

    @Test(timeout = 30_000)
    public void nothingIsClaimedOfANewFile() throws JSONException {
        assertEquals("{\"url\":\"https://example.com/a\"}\n", HostMessages.order(DownloadState.begin("https://example.com/a")));
        assertTrue(new JSONObject(HostMessages.order(DownloadState.begin("https://example.com/a").unmetered(true))).getBoolean("unmetered"));
    }

    @Test(timeout = 30_000)
    public void failuresAreTold() throws Exception {
        Fetcher.Fill f = fill();
        daemonSays("{\"type\":\"failed\",\"code\":\"busy\",\"host\":\"example.com\",\"status\":503,\"error\":\"it rains\",\"again\":true}");
        Fetcher.Failed e = assertThrows(Fetcher.Failed.class, f::await);
        assertEquals("busy example.com 503 it rains", e.why.code + " " + e.why.host + " " + e.why.status + " " + e.why.detail);
        assertTrue(e.again);
    }

    @Test(timeout = 30_000)
    public void aDaemonThatDiesMayComeBack() throws Exception {
        Fetcher.Fill f = fill();
        daemonSays("{\"type\":\"at\",\"bytes\":7}");
        assertTrue(assertThrows(Fetcher.Failed.class, f::await).again);
    }

    @Test(timeout = 30_000)
    public void aDaemonThatEndsInOrderMayComeBack() throws Exception {
        Fetcher.Fill f = fill();
        daemonSays("{\"type\":\"stopped\"}");
        assertTrue(assertThrows(Fetcher.Failed.class, f::await).again);
    }

    @Test(timeout = 30_000)
    public void nonsenseEndsIt() throws Exception {
        Fetcher.Fill f = fill();
        daemonSays("{");
        assertThrows(Fetcher.Failed.class, f::await);
    }

    @Test(timeout = 30_000)
    public void isStopped() throws Exception {
        Fetcher.Fill f = fill();
        whenHanded = f::stop;
        daemonSays("{\"type\":\"at\",\"bytes\":8}", "{\"type\":\"stopped\"}");
        assertEquals(1, stops);
        assertFalse("what was wanted is no failure", f.await());
        assertEquals(1, steps.size());
    }

    @Test(timeout = 30_000)
    public void isStoppedBeforeItsConnection() throws Exception {
        Fetcher.Fill f = fill();
        f.stop();
        assertFalse(f.await());
        daemonSays();
        assertEquals("handed over for nothing", null, handed);
    }

    @Test(timeout = 30_000)
    public void thereIsNoDaemon() {
        fetches.session(null);
        assertTrue(assertThrows(Fetcher.Failed.class, this::fill).again);
        assertEquals(0, sent.size());
    }
}
