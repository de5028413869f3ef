package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Notification;
import android.app.NotificationManager;
import android.content.Context;
import android.content.Intent;
import android.net.Uri;
import android.os.Looper;
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
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowToast;

/** Shared links, and what becomes of them. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = 35)
public class DownloadServiceTest {
    private static InetSocketAddress proxy;
    private static File dir;

    /** A service that asks a server of the test and writes into its folder. */
    public static class Here extends DownloadService {
        @Override
        InetSocketAddress proxy() {
            return proxy;
        }

        @Override
        Store store() {
            return new Store(this) {
                @Override
                Target create(String name) {
                    final File file = new File(dir, name);
                    return new Target() {
                        @Override
                        public Store.Opened open() throws IOException {
                            RandomAccessFile f = new RandomAccessFile(file, "rw");
                            return new Store.Opened(f.getChannel(), f);
                        }

                        @Override
                        public void finish() throws IOException {
                            Files.createFile(new File(dir, "whole").toPath());
                        }

                        @Override
                        public void delete() {
                            assertTrue(file.delete());
                        }
                    };
                }
            };
        }
    }

    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private final List<String> asked = new CopyOnWriteArrayList<String>();
    private final CountDownLatch rest = new CountDownLatch(1); // the first answer goes on
    private ServerSocket server;
    private Here service;

    @Before
    public void start() throws IOException {
        dir = folder.getRoot();
        server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        proxy = new InetSocketAddress(server.getInetAddress(), server.getLocalPort());
        new Thread(this::serve).start();
        service = Robolectric.buildService(Here.class).create().get();
    }

    @After
    public void end() throws IOException {
        rest.countDown();
        service.onDestroy();
        server.close();
    }

    private void serve() {
        while (true) {
            try (Socket s = server.accept()) {
                BufferedReader in = new BufferedReader(new InputStreamReader(s.getInputStream(), "ISO-8859-1"));
                StringBuilder head = new StringBuilder();
                for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
                    head.append(line).append(' ');
                }
                asked.add(head.toString());
                String answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
                if (head.indexOf("Range: bytes=5-") >= 0) {
                    answer = "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789";
                } else if (head.indexOf("/slow.bin") >= 0) {
                    answer = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n01234";
                } else if (head.indexOf("/whole.bin") >= 0) {
                    answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
                }
                s.getOutputStream().write(answer.getBytes("ISO-8859-1"));
                if (answer.endsWith("01234")) {
                    rest.await();
                }
            } catch (IOException | InterruptedException e) {
                return;
            }
        }
    }

    private void send(String action, String url) {
        service.onStartCommand(new Intent("io.github.tributary." + action).putExtra("url", url).putExtra("id", 101), 0, 1);
    }

    private Notification shown() {
        NotificationManager manager = (NotificationManager) service.getSystemService(Context.NOTIFICATION_SERVICE);
        Notification n = shadowOf(manager).getNotification(101);
        return n != null ? n : shadowOf(service).getLastForegroundNotification();
    }

    private String text() {
        return shown().extras.getCharSequence(Notification.EXTRA_TEXT).toString();
    }

    private interface Condition {
        boolean met();
    }

    private void until(String what, Condition c) throws InterruptedException {
        for (int i = 0; i < 2000; i++) {
            shadowOf(Looper.getMainLooper()).idle();
            if (c.met()) {
                return;
            }
            Thread.sleep(10);
        }
        throw new AssertionError("in vain: " + what + "; shown: " + text());
    }

    private String file(String name) throws IOException {
        return new String(Files.readAllBytes(new File(dir, name).toPath()), "UTF-8");
    }

    @Test
    public void downloads() throws Exception {
        send("ADD", "https://example.com/a/whole.bin?x=1");
        assertNotNull("not in the foreground", shadowOf(service).getLastForegroundNotification());
        until("it is done", () -> text().contains("done"));
        assertEquals("0123456789", file("whole.bin"));
        assertTrue("not given to the user", new File(dir, "whole").exists());
        assertTrue(asked.get(0), asked.get(0).startsWith("GET https://example.com/a/whole.bin?x=1 HTTP/1.1"));
        assertTrue("the service goes on for nothing", shadowOf(service).isStoppedBySelf());
    }

    @Test
    public void failuresAreShown() throws Exception {
        send("ADD", "https://example.com/missing.bin");
        until("the failure is shown", () -> text().contains("404"));
        assertFalse(new File(dir, "whole").exists());
        assertEquals("try again, or give up", 2, shown().actions.length);
    }

    @Test
    public void pausesAndGoesOn() throws Exception {
        send("ADD", "https://example.com/slow.bin");
        until("half is there", () -> new File(dir, "slow.bin").length() == 5);
        send("PAUSE", null);
        rest.countDown();
        until("it is paused", () -> shown().actions.length == 2 && (shown().flags & Notification.FLAG_ONGOING_EVENT) == 0);
        assertFalse("what is paused must stay", shadowOf(service).isStoppedBySelf());
        send("RESUME", null);
        until("it is done", () -> text().contains("done"));
        assertEquals("0123456789", file("slow.bin"));
        assertTrue(asked.get(1), asked.get(1).contains("If-Range: \"a\""));
    }

    @Test
    public void whatIsGivenUpIsDeleted() throws Exception {
        send("ADD", "https://example.com/slow.bin");
        until("half is there", () -> new File(dir, "slow.bin").length() == 5);
        send("CANCEL", null);
        rest.countDown();
        until("it is deleted", () -> !new File(dir, "slow.bin").exists());
        until("the service ends", () -> shadowOf(service).isStoppedBySelf());
    }

    @Test
    public void sharedLinks() {
        String[][] rows = {
            {Intent.ACTION_SEND, "see https://example.com/x.iso.", "https://example.com/x.iso"},
            {Intent.ACTION_SEND, "no link", null},
            {Intent.ACTION_SEND, null, null},
            {Intent.ACTION_VIEW, "https://example.com/y.iso", "https://example.com/y.iso"},
        };
        for (String[] r : rows) {
            Intent intent = new Intent(r[0]);
            if (r[0].equals(Intent.ACTION_VIEW)) {
                intent.setData(Uri.parse(r[1]));
            } else {
                intent.putExtra(Intent.EXTRA_TEXT, r[1]);
            }
            ShareActivity shared = Robolectric.buildActivity(ShareActivity.class, intent).create().get();
            assertTrue("it has no screen", shared.isFinishing());
            assertNotNull("the user hears nothing", ShadowToast.getLatestToast());
            String got = null;
            boolean running = false;
            for (Intent s = next(); s != null; s = next()) {
                running = running || s.getComponent().getClassName().equals(ProxyService.class.getName());
                if (s.getComponent().getClassName().equals(DownloadService.class.getName())) {
                    got = s.getStringExtra("url");
                }
            }
            assertEquals(String.valueOf(r[1]), r[2], got);
            assertEquals("the proxy", r[2] != null, running);
        }
        assertNull(next());
    }

    private Intent next() {
        return shadowOf(RuntimeEnvironment.getApplication()).getNextStartedService();
    }
}
