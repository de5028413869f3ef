package io.github.tributary.core;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.json.JSONException;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** A download from its beginning to its end, with what comes between. */
public class DownloadJobTest {
    private static final String WHOLE = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n0123456789";
    private static final String HALF = WHOLE.substring(0, WHOLE.length() - 5);
    private static final String REST =
            "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789";

    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private final BlockingQueue<DownloadState> told = new LinkedBlockingQueue<DownloadState>();
    private volatile String answer = ""; // "" = the server hangs up
    private volatile String toRange = "";
    private ServerSocket server;
    private File file;
    private String finished = "";
    private boolean full;
    private volatile boolean away; // the daemon
    private int created;
    private final CountDownLatch deleted = new CountDownLatch(1);

    @Before
    public void start() throws IOException {
        file = new File(folder.getRoot(), "file");
        server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        new Thread(
                        () -> {
                            try {
                                while (true) {
                                    try (Socket s = server.accept()) {
                                        BufferedReader in = new BufferedReader(new InputStreamReader(s.getInputStream(), "ISO-8859-1"));
                                        boolean range = false;
                                        for (String line = in.readLine(); !line.isEmpty(); line = in.readLine()) {
                                            range |= line.startsWith("Range:");
                                        }
                                        s.getOutputStream().write((range ? toRange : answer).getBytes("ISO-8859-1"));
                                    }
                                }
                            } catch (IOException e) {
                                // over
                            }
                        })
                .start();
    }

    @After
    public void end() throws IOException {
        server.close();
    }

    private final Target.Files files =
            new Target.Files() {
                @Override
                public Target create(String name) {
                    created++;
                    return at(file.getPath());
                }

                @Override
                public Target at(String place) {
                    return new Target() {
                        @Override
                        public String place() {
                            return place;
                        }

                        @Override
                        public Opened open() throws IOException {
                            RandomAccessFile f = new RandomAccessFile(place, "rw");
                            return new Opened(f.getChannel(), f);
                        }

                        @Override
                        public void finish(String name) throws IOException {
                            if (full) {
                                throw new IOException("no room");
                            }
                            finished = name;
                        }

                        @Override
                        public void delete() throws IOException {
                            assertTrue(file.delete());
                            deleted.countDown();
                        }
                    };
                }
            };

    private DownloadJob job(DownloadState from) {
        return new DownloadJob(
                from, files, () -> away ? null : new InetSocketAddress(server.getInetAddress(), server.getLocalPort()), told::add);
    }

    private DownloadJob begin(DownloadState from) {
        DownloadJob job = job(from);
        job.start();
        return job;
    }

    private DownloadState until(DownloadState.Phase phase) throws InterruptedException {
        while (true) {
            DownloadState s = told.poll(20, TimeUnit.SECONDS);
            assertTrue("never " + phase, s != null);
            if (s.phase == phase) {
                return s;
            }
            assertTrue(s.phase + ": " + s.error, s.active());
        }
    }

    private DownloadState fresh() {
        return DownloadState.begin("http://example.com/a%20b.bin");
    }

    @Test
    public void isDone() throws Exception {
        answer = WHOLE.replace("ETag", "Content-Disposition: attachment; filename=c.zip\r\nETag");
        begin(fresh());
        DownloadState s = until(DownloadState.Phase.DONE);
        assertEquals("c.zip", s.name);
        assertEquals("c.zip", finished);
        assertEquals(10, s.bytes);
        assertEquals(10, s.total);
        assertFalse(s.active());
        assertArrayEquals("0123456789".getBytes("UTF-8"), Files.readAllBytes(file.toPath()));
    }

    @Test
    public void goesOnByItself() throws Exception {
        answer = HALF;
        toRange = REST;
        begin(fresh());
        DownloadState waits = until(DownloadState.Phase.WAITING);
        assertEquals(5, waits.bytes);
        assertFalse(waits.error.isEmpty());
        assertTrue(until(DownloadState.Phase.RUNNING).error.isEmpty());
        assertEquals("a b.bin", until(DownloadState.Phase.DONE).name);
        assertArrayEquals("0123456789".getBytes("UTF-8"), Files.readAllBytes(file.toPath()));
    }

    @Test
    public void pausesAndGoesOnInAnotherProcess() throws Exception {
        answer = HALF;
        DownloadJob job = begin(fresh());
        DownloadState kept = DownloadState.parse(until(DownloadState.Phase.WAITING).toJson());
        assertEquals("nobody runs it", DownloadState.Phase.PAUSED, kept.phase);
        job.pause();
        assertEquals(5, until(DownloadState.Phase.PAUSED).bytes);
        toRange = REST;
        begin(kept);
        until(DownloadState.Phase.DONE);
        assertArrayEquals("0123456789".getBytes("UTF-8"), Files.readAllBytes(file.toPath()));
    }

    @Test
    public void allWasThere() throws Exception {
        answer = HALF;
        DownloadJob job = begin(fresh());
        DownloadState half = until(DownloadState.Phase.WAITING);
        job.pause();
        until(DownloadState.Phase.PAUSED);
        toRange = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */5\r\nContent-Length: 0\r\n\r\n";
        begin(DownloadState.parse(half.toJson()));
        assertEquals(5, until(DownloadState.Phase.DONE).total);
    }

    @Test
    public void waitsForTheDaemon() throws Exception {
        answer = WHOLE;
        away = true;
        begin(fresh());
        until(DownloadState.Phase.WAITING);
        away = false;
        until(DownloadState.Phase.DONE);
    }

    @Test
    public void whatIsGivenUpIsDeleted() throws Exception {
        answer = HALF;
        DownloadJob job = begin(fresh());
        until(DownloadState.Phase.WAITING);
        job.giveUp();
        assertTrue("not while it runs", deleted.await(20, TimeUnit.SECONDS));
        assertEquals("one file", 1, created);
    }

    @Test
    public void whatIsPausedCanBeGivenUp() throws Exception {
        Files.write(file.toPath(), new byte[5]);
        DownloadJob job = job(fresh().with(file.getPath()));
        job.giveUp();
        job.start();
        assertTrue(deleted.await(20, TimeUnit.SECONDS));
        assertEquals("it was begun anew", 0, created);
    }

    @Test
    public void fails() throws Exception {
        answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        begin(fresh());
        assertEquals("the server answers 404 Not Found", until(DownloadState.Phase.FAILED).error);
        full = true;
        answer = WHOLE;
        begin(fresh());
        assertEquals("no room", until(DownloadState.Phase.FAILED).error);
    }

    @Test
    public void isKept() throws JSONException {
        DownloadState s = fresh().in(DownloadState.Phase.FAILED, "why");
        assertEquals(s.toJson().toString(), DownloadState.parse(s.toJson()).toJson().toString());
        assertEquals(DownloadState.Phase.PAUSED, DownloadState.parse(s.toJson().put("phase", "OF_LATER")).phase);
    }
}
