package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.json.JSONException;
import org.json.JSONObject;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** A download from its start to its end, with interruptions. */
public class DownloadJobTest {
    private static final Fetcher.Failed BROKEN = new Fetcher.Failed(failure("it broke off"), true);

    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private final FakeFetcher daemon = new FakeFetcher();
    private final BlockingQueue<DownloadState> told = new LinkedBlockingQueue<DownloadState>();
    private FolderFiles files;
    private File file;

    @Before
    public void start() {
        files = new FolderFiles(folder.getRoot());
        file = new File(files.dir, "a b.bin");
    }

    private static Failure failure(String detail) {
        return new Failure("busy", "example.com", 503, detail);
    }

    private static String shown(DownloadState s) {
        return s.failure.code + " " + s.failure.host + " " + s.failure.status;
    }

    /** Returns what is stored of a download, without a field. */
    private static JSONObject json(DownloadState s, String without) {
        JSONObject o = s.toJson();
        o.remove(without);
        return o;
    }

    private DownloadJob job(DownloadState from) {
        return new DownloadJob(from, files, daemon, told::add);
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
            assertTrue(s.phase + ": " + s.failure.detail, s.active());
        }
    }

    private static DownloadState fresh() {
        return DownloadState.begin("http://example.com/a%20b.bin");
    }

    private void isWhole() throws IOException {
        assertEquals(FakeFetcher.CONTENT, new String(Files.readAllBytes(file.toPath()), "UTF-8"));
    }

    @Test(timeout = 30_000)
    public void isDone() throws Exception {
        assertEquals("a b.bin", fresh().name);
        begin(fresh());
        DownloadState s = until(DownloadState.Phase.DONE);
        assertEquals("c.zip", s.name);
        assertEquals("c.zip", files.finished);
        assertEquals(10, s.bytes);
        assertEquals(10, s.total());
        assertFalse(s.active());
        isWhole();
    }

    @Test(timeout = 30_000)
    public void goesOnByItself() throws Exception {
        daemon.half = true;
        daemon.failure = BROKEN;
        begin(fresh());
        DownloadState waits = until(DownloadState.Phase.WAITING);
        assertEquals(5, waits.bytes);
        assertEquals("it broke off", waits.failure.detail);
        daemon.half = false;
        daemon.failure = null;
        assertEquals("", until(DownloadState.Phase.RUNNING).failure.code);
        until(DownloadState.Phase.DONE);
        assertEquals(5L, (long) daemon.asked.get(daemon.asked.size() - 1));
        isWhole();
    }

    /** A running download gets a new order, and continues where it was. */
    @Test(timeout = 30_000)
    public void keepsToFreeNetworksFromNowOn() throws Exception {
        daemon.half = true;
        DownloadJob job = begin(fresh());
        while (until(DownloadState.Phase.RUNNING).bytes == 0) {}
        assertFalse(daemon.unmetered);
        daemon.half = false;
        job.unmetered(true);
        DownloadState done = until(DownloadState.Phase.DONE);
        assertTrue(daemon.unmetered);
        assertTrue(DownloadState.parse(done.toJson()).unmetered);
        assertEquals(Arrays.asList(0L, 5L), daemon.asked);
        isWhole();
    }

    /** Bytes that cannot be resumed are discarded to save money, but not for more speed. */
    @Test(timeout = 30_000)
    public void allNetworksMayComeLater() throws Exception {
        daemon.half = true;
        daemon.validator = "";
        DownloadJob job = begin(fresh().unmetered(true));
        while (until(DownloadState.Phase.RUNNING).bytes == 0) {}
        job.unmetered(false);
        assertFalse(until(DownloadState.Phase.RUNNING).unmetered);
        assertEquals(Arrays.asList(0L), daemon.asked);
        job.pause();
        assertFalse(until(DownloadState.Phase.PAUSED).unmetered);
    }

    @Test(timeout = 30_000)
    public void pausesAndGoesOnInAnotherProcess() throws Exception {
        daemon.half = true;
        DownloadJob job = begin(fresh());
        DownloadState half = until(DownloadState.Phase.RUNNING);
        while (half.bytes == 0) {
            half = until(DownloadState.Phase.RUNNING);
        }
        DownloadState kept = DownloadState.parse(half.toJson());
        assertEquals("nobody runs it, nobody paused it", DownloadState.Phase.LATER, kept.phase);
        job.pause();
        assertEquals(5, until(DownloadState.Phase.PAUSED).bytes);
        daemon.half = false;
        begin(kept);
        until(DownloadState.Phase.DONE);
        assertEquals(Arrays.asList(0L, 5L), daemon.asked);
        assertEquals("one file", 1, files.created);
        isWhole();
    }

    /** Runs a job that wakes as soon as it waits. */
    private DownloadState lastOf(DownloadState from) throws InterruptedException {
        DownloadJob[] job = new DownloadJob[1];
        job[0] =
                new DownloadJob(
                        from,
                        files,
                        daemon,
                        s -> {
                            if (s.phase == DownloadState.Phase.WAITING) {
                                job[0].wake();
                            }
                            told.add(s);
                        });
        job[0].start();
        while (true) {
            DownloadState s = told.poll(20, TimeUnit.SECONDS);
            assertTrue("it does not end", s != null);
            if (!s.active()) {
                return s;
            }
        }
    }

    @Test(timeout = 60_000)
    public void whatBreaksOffForLongGoesOnLater() throws Exception {
        daemon.half = true;
        daemon.failure = BROKEN;
        DownloadState s = lastOf(fresh());
        assertEquals(DownloadState.Phase.LATER, s.phase);
        assertEquals("it broke off", s.failure.detail);
        assertEquals(5, s.kept);
        assertTrue("not tried again", daemon.asked.size() > 10);
        daemon.validator = "";
        assertEquals("it would begin anew, again and again", DownloadState.Phase.FAILED, lastOf(fresh()).phase);
    }

    @Test
    public void isNotTriedForEver() throws JSONException {
        DownloadState s = fresh();
        for (int i = 0; i < 20; i++) {
            s = DownloadState.parse(s.brokenOff(failure("no link")).toJson());
            assertEquals("round " + i, DownloadState.Phase.LATER, s.phase);
        }
        assertEquals(DownloadState.Phase.FAILED, s.brokenOff(failure("no link")).phase);
        for (int i = 0; i < 50; i++) {
            s = DownloadState.parse(s.brokenOff(new Failure("no_link", "", 0, "")).toJson());
            assertEquals("there may be no Wi-Fi for days", DownloadState.Phase.LATER, s.phase);
        }
        assertEquals("the user tries again", DownloadState.Phase.LATER, s.wanted().brokenOff(Failure.NONE).phase);
        DownloadState more = s.at(new Fetcher.Step("n", new Version("\"v\"", "m", 9, "p"), 3, 2, Shares.NONE));
        assertEquals("bytes came meanwhile", DownloadState.Phase.LATER, more.brokenOff(Failure.NONE).phase);
    }

    @Test(timeout = 30_000)
    public void goesOnLaterIfNobodyPausedIt() throws Exception {
        daemon.half = true;
        DownloadJob job = begin(fresh());
        while (until(DownloadState.Phase.RUNNING).bytes == 0) {
            // not yet
        }
        job.suspend();
        until(DownloadState.Phase.LATER);
        daemon.validator = "";
        DownloadJob second = begin(fresh());
        while (until(DownloadState.Phase.RUNNING).bytes == 0) {
            // not yet
        }
        second.suspend();
        assertEquals("it would begin anew unasked", 5, until(DownloadState.Phase.PAUSED).bytes);
    }

    @Test(timeout = 30_000)
    public void whatThePausingUserWantsHolds() throws Exception {
        daemon.half = true;
        DownloadJob job = job(fresh());
        job.pause();
        job.suspend(); // the service ends
        job.start();
        until(DownloadState.Phase.PAUSED);
    }

    @Test(timeout = 30_000)
    public void whatWasDeletedBeginsAnew() throws Exception {
        DownloadState s = fresh().with(new File(files.dir, "gone.bin").getPath());
        begin(s.at(new Fetcher.Step("a b.bin", new Version("\"v\"", "m", 10, "p"), 5, 5, Shares.NONE)));
        until(DownloadState.Phase.DONE);
        assertEquals(Arrays.asList(0L), daemon.asked);
        assertEquals(1, files.created);
        isWhole();
    }

    @Test(timeout = 30_000)
    public void pausesWhileItWaits() throws Exception {
        daemon.failure = BROKEN;
        daemon.half = true;
        DownloadJob job = begin(fresh());
        until(DownloadState.Phase.WAITING);
        job.pause();
        until(DownloadState.Phase.PAUSED);
    }

    @Test(timeout = 30_000)
    public void whatIsGivenUpIsDeleted() throws Exception {
        daemon.half = true;
        DownloadJob job = begin(fresh());
        while (until(DownloadState.Phase.RUNNING).bytes == 0) {
            // not yet
        }
        job.giveUp();
        assertTrue("not while it runs", files.deleted.await(20, TimeUnit.SECONDS));
    }

    @Test(timeout = 30_000)
    public void whatFailsWhileItIsGivenUpIsDeleted() throws Exception {
        daemon.half = true;
        daemon.failure = new Fetcher.Failed(failure("no"), false);
        Files.write(file.toPath(), new byte[5]);
        DownloadJob job = job(fresh().with(file.getPath()));
        daemon.whenAsked = () -> job.giveUp();
        job.start();
        until(DownloadState.Phase.FAILED);
        assertTrue(files.deleted.await(20, TimeUnit.SECONDS));
    }

    @Test(timeout = 30_000)
    public void whatIsOverSaysSo() throws Exception {
        daemon.failure = new Fetcher.Failed(failure("no"), false);
        DownloadJob job = begin(fresh());
        until(DownloadState.Phase.FAILED);
        while (job.giveUp()) {
            Thread.yield(); // its last report comes before its end
        }
    }

    @Test(timeout = 30_000)
    public void whatIsPausedCanBeGivenUp() throws Exception {
        Files.write(file.toPath(), new byte[5]);
        DownloadJob job = job(fresh().with(file.getPath()));
        job.giveUp();
        job.start();
        assertTrue(files.deleted.await(20, TimeUnit.SECONDS));
        assertEquals("it was begun anew", 0, files.created + daemon.asked.size());
    }

    @Test(timeout = 30_000)
    public void fails() throws Exception {
        daemon.failure = new Fetcher.Failed(new Failure("not_found", "example.com", 404, "gone"), false);
        begin(fresh());
        assertEquals("not_found example.com 404", shown(until(DownloadState.Phase.FAILED)));
        daemon.failure = null;
        files.full = true;
        begin(fresh());
        DownloadState full = until(DownloadState.Phase.FAILED);
        assertEquals("file  0", shown(full));
        assertEquals("no room", full.failure.detail);
    }

    @Test(timeout = 30_000)
    public void isKept() throws JSONException {
        DownloadState s = fresh().at(new Fetcher.Step("n", new Version("\"v\"", "m", 9, "p"), 3, 2, Shares.NONE)).in(DownloadState.Phase.FAILED, new Failure("status", "example.com", 418, "teapot"));
        DownloadState again = DownloadState.parse(s.toJson());
        assertEquals(s.toJson().toString(), again.toJson().toString());
        assertEquals("m", again.version.mark);
        assertEquals("status example.com 418", shown(again));
        assertEquals("of an earlier version of the app", "", DownloadState.parse(json(s, "failure")).failure.code);
        assertEquals(DownloadState.Phase.PAUSED, DownloadState.parse(s.toJson().put("phase", "OF_LATER")).phase);
    }
}
