package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Collections;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** The daemon's process is started, restarted, and ended. */
public class DaemonProcessTest {
    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private final BlockingQueue<String> events = new LinkedBlockingQueue<String>();

    private DaemonProcess shell(String script) {
        return run("/bin/sh", "-c", script);
    }

    private DaemonProcess run(String... command) {
        DaemonProcess p =
                new DaemonProcess(
                        Arrays.asList(command),
                        Collections.singletonMap("HELLO", "from the app"),
                        folder.getRoot(),
                        new File(folder.getRoot(), "log"),
                        new DaemonProcess.Listener() {
                            @Override
                            public void started() {
                                events.add("started");
                            }

                            @Override
                            public void died(int code, long waitMillis) {
                                events.add("died " + code + " " + waitMillis);
                            }
                        });
        p.start();
        return p;
    }

    private String next() throws InterruptedException {
        String s = events.poll(20, TimeUnit.SECONDS);
        assertNotNull("nothing happens", s);
        return s;
    }

    @Test
    public void restartsWhatDies() throws Exception {
        DaemonProcess p = shell("echo $HELLO; exit 7");
        assertEquals("started", next());
        assertEquals("died 7 500", next());
        assertEquals("started", next());
        assertEquals("died 7 1000", next());
        p.stop(5_000);
        String log = new String(Files.readAllBytes(new File(folder.getRoot(), "log").toPath()), "UTF-8");
        assertEquals("from the app\n", log);
        String before = new String(Files.readAllBytes(Report.before(new File(folder.getRoot(), "log")).toPath()), "UTF-8");
        assertEquals("what the run before said of its end is lost", "from the app\n", before);
        assertTrue("started after the stop", events.isEmpty());
    }

    @Test
    public void endsInOrder() throws Exception {
        File flag = new File(folder.getRoot(), "stop");
        DaemonProcess p = shell("until [ -e stop ]; do sleep 0.05; done; touch orderly");
        assertEquals("started", next());
        assertTrue(flag.createNewFile());
        p.stop(20_000);
        assertTrue(new File(folder.getRoot(), "orderly").exists());
        assertTrue("it is told as a death", events.isEmpty());
    }

    @Test
    public void endsWhatDoesNotListen() throws Exception {
        DaemonProcess p = shell("trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done");
        assertEquals("started", next());
        File pid = new File(folder.getRoot(), "pid");
        for (int i = 0; i < 400 && pid.length() == 0; i++) {
            Thread.sleep(10);
        }
        String number = new String(Files.readAllBytes(pid.toPath()), "UTF-8").trim();
        p.stop(100);
        assertFalse("it still runs", new File("/proc/" + number).exists());
    }

    @Test
    public void aMissingProgramIsTriedAgain() throws Exception {
        DaemonProcess p = run("/nowhere/tributary");
        assertEquals("died -1 500", next());
        p.stop(1_000);
    }
}
