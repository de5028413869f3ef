package io.github.tributary.core;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Downloads through something that answers like the daemon. */
public class DownloadTest {
    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private final List<String> asked = new CopyOnWriteArrayList<String>();
    private final List<String> answers = new ArrayList<String>();
    private ServerSocket server;
    private Thread thread;
    private File file;

    @Before
    public void listen() throws IOException {
        file = folder.newFile();
        server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        thread = new Thread(this::serve);
        thread.start();
    }

    @After
    public void end() throws Exception {
        server.close();
        thread.join();
    }

    private void serve() {
        for (int i = 0; ; i++) {
            try (Socket s = server.accept()) {
                BufferedReader in = new BufferedReader(new InputStreamReader(s.getInputStream(), "ISO-8859-1"));
                StringBuilder head = new StringBuilder();
                for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
                    head.append(line).append('\n');
                }
                asked.add(head.toString());
                s.getOutputStream().write(answers.get(Math.min(i, answers.size() - 1)).getBytes("ISO-8859-1"));
            } catch (IOException e) {
                return;
            }
        }
    }

    private Download download(String url, RandomAccessFile f) {
        return new Download(
                url, new InetSocketAddress(server.getInetAddress(), server.getLocalPort()), f.getChannel(), d -> {});
    }

    private Download get(String url) throws IOException {
        try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
            Download d = download(url, f);
            d.run();
            return d;
        }
    }

    private void holds(String text) throws IOException {
        assertArrayEquals(text.getBytes("UTF-8"), Files.readAllBytes(file.toPath()));
    }

    private static String ok(String body, String... fields) {
        String extra = fields.length == 0 ? "" : String.join("\r\n", fields) + "\r\n";
        return "HTTP/1.1 200 OK\r\nContent-Length: " + body.length() + "\r\n" + extra + "\r\n" + body;
    }

    @Test
    public void wholeUrlsAreAskedFor() throws IOException {
        answers.add("HTTP/1.1 103 Early Hints\r\n\r\n" + ok("hello"));
        get("HTTPS://example.com/a b?c=%20#part");
        holds("hello");
        assertTrue(asked.get(0), asked.get(0).startsWith("GET https://example.com/a%20b?c=%20 HTTP/1.1\nHost: example.com\n"));
        assertTrue(asked.get(0), !asked.get(0).contains("Range:"));
    }

    @Test
    public void bodiesOfAllKinds() throws IOException {
        answers.add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\nA\r\n big world\r\n0\r\nTrailer: 1\r\n\r\n");
        get("http://example.com");
        holds("hello big world");
        answers.set(0, "HTTP/1.0 200 OK\r\n\r\nto the end");
        get("http://example.com/");
        holds("to the end");
        answers.set(0, ok(""));
        get("http://example.com/");
        holds("");
    }

    @Test
    public void goesOn() throws IOException {
        answers.add("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234");
        answers.add("HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789");
        try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
            Download first = download("http://example.com/x", f);
            assertThrows(IOException.class, first::run);
            assertEquals("\"v1\"", first.validator());
            Download second = download("http://example.com/x", f);
            second.resume(first.validator(), f.length());
            second.run();
        }
        holds("0123456789");
        assertTrue(asked.get(1), asked.get(1).contains("Range: bytes=5-\nIf-Range: \"v1\"\n"));
    }

    @Test
    public void anotherVersionBeginsAnew() throws IOException {
        answers.add(ok("short", "ETag: \"v2\""));
        Files.write(file.toPath(), "a longer old one".getBytes("UTF-8"));
        try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
            Download d = download("http://example.com/x", f);
            d.resume("\"v1\"", 6);
            d.run();
            assertEquals("\"v2\"", d.validator());
        }
        holds("short");
    }

    @Test
    public void aWrongPartIsRefused() throws IOException {
        for (String head :
                Arrays.asList(
                        "ETag: \"v2\"\r\nContent-Range: bytes 6-9/10",
                        "ETag: \"v1\"\r\nContent-Range: bytes 5-9/10",
                        "ETag: \"v1\"",
                        "ETag: W/\"v1\"\r\nContent-Range: bytes 6-9/10")) {
            answers.clear();
            answers.add("HTTP/1.1 206 Partial Content\r\n" + head + "\r\nContent-Length: 4\r\n\r\nXXXX");
            Files.write(file.toPath(), "012345".getBytes("UTF-8"));
            try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
                Download d = download("http://example.com/x", f);
                d.resume("\"v1\"", 6);
                assertThrows(head, Download.Refused.class, d::run);
            }
            holds("012345");
        }
    }

    @Test
    public void redirects() throws IOException {
        answers.add("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
        answers.add("HTTP/1.1 301 Moved\r\nLocation: https://other.example/c\r\nContent-Length: 0\r\n\r\n");
        answers.add(ok("there"));
        get("http://example.com/a");
        holds("there");
        assertTrue(asked.get(1), asked.get(1).startsWith("GET http://example.com/b "));
        assertTrue(asked.get(2), asked.get(2).startsWith("GET https://other.example/c "));
    }

    @Test
    public void wrongRedirects() {
        answers.add("HTTP/1.1 302 Found\r\nLocation: http://example.com/b\r\nContent-Length: 0\r\n\r\n");
        assertThrows("down to http", Download.Refused.class, () -> get("https://example.com/a"));
        assertThrows("a loop", Download.Refused.class, () -> get("http://example.com/a"));
        assertEquals(12, asked.size());
    }

    @Test
    public void wrongAnswers() {
        for (String a :
                Arrays.asList(
                        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/2\r\nContent-Length: 2\r\n\r\nXX",
                        "HTTP/2 200\r\n\r\n",
                        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour",
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello",
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n",
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello6\r\n",
                        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                        "HTTP/1.1 200 OK\r\nX: " + "x".repeat(200_000) + "\r\n\r\n",
                        "")) {
            answers.clear();
            answers.add(a);
            assertThrows(a, IOException.class, () -> get("http://example.com/"));
        }
    }

    @Test
    public void tellsWhatTheDaemonSays() {
        answers.add(
                "HTTP/1.1 502 Bad Gateway\r\nProxy-Status: tributary; error=dns_error\r\nContent-Length: 40\r\n\r\n"
                        + "Tributary (proxy): No such host name.\n");
        Download.Refused e = assertThrows(Download.Refused.class, () -> get("http://example.com/"));
        assertEquals("No such host name.", e.getMessage());
        answers.clear();
        answers.add("HTTP/1.1 502 Bad Gateway\r\nProxy-Status: other; error=dns_error\r\nContent-Length: 3\r\n\r\n<p>");
        e = assertThrows(Download.Refused.class, () -> get("http://example.com/"));
        assertEquals("the server answers 502 Bad Gateway", e.getMessage());
    }

    @Test
    public void isCalledWhatTheServerSays() throws IOException {
        answers.add("HTTP/1.1 302 Found\r\nLocation: /latest/app-1.2.apk?token=x\r\nContent-Length: 0\r\n\r\n");
        answers.add(ok("there"));
        assertEquals("app-1.2.apk", get("http://example.com/download").name());
        answers.clear();
        answers.add(ok("there").replace("Content-Length", "Content-Disposition: attachment; filename=a.zip\r\nContent-Length"));
        assertEquals("a.zip", get("http://example.com/download").name());
    }

    @Test
    public void wrongUrls() {
        answers.add(ok("x"));
        for (String url : Arrays.asList("ftp://example.com/", "https://user:secret@example.com/", "https:///x", "x", "http://a b/")) {
            assertThrows(url, IOException.class, () -> get(url));
        }
        assertEquals("asked for", 0, asked.size());
    }

    @Test
    public void cancelled() throws IOException {
        answers.add(ok("x"));
        try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
            Download d = download("http://example.com/", f);
            d.cancel();
            assertThrows(IOException.class, d::run);
        }
        assertEquals(0, asked.size());
    }
}
