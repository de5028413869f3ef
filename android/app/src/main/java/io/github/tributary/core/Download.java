package io.github.tributary.core;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Locale;

/**
 * One file, fetched by the daemon over all links: https, too, since the daemon is asked for the whole URL (RFC 9112 section
 * 3.2.2) and speaks TLS with the server itself. It can be stopped and gone on with. cancel is called by any thread,
 * the rest by one.
 */
public final class Download implements Closeable {
    /** What is told meanwhile, by the thread of run. */
    public interface Progress {
        /** More bytes are there. */
        void at(Download d);
    }

    /** An answer that is not the file. The message is for people. */
    public static final class Refused extends IOException {
        private static final long serialVersionUID = 1;

        /** The status, 0 if the answer is no answer. */
        public final int status;

        Refused(int status, String message) {
            super(message);
            this.status = status;
        }

        /** Whether the same question may be answered later: 408, 429 and what is wrong with a server or with the way to it. */
        boolean passes() {
            return status == 408 || status == 429 || status >= 500 && status != 501 && status != 505;
        }
    }

    private static final int REDIRECTS = 10;
    private static final String OURS = "Tributary (proxy): ";
    private static final int LONGEST_REASON = 2000;
    private static final int CONNECT_MILLIS = 5_000;
    private static final int SILENT_MILLIS = 120_000; // the daemon waits for a lost link by itself

    private final InetSocketAddress proxy;
    private final FileChannel file;
    private final Progress progress;
    private final byte[] buffer = new byte[256 << 10];

    private String url;
    private String validator = ""; // of what is in the file
    private String name = ""; // from the answer that the file began with
    private long have;
    private long total = -1;

    private Socket socket; // guarded by this, as is cancelled
    private boolean cancelled;

    /** A new download of url into an empty file, through the daemon that listens at proxy; null = it does not. */
    public Download(String url, InetSocketAddress proxy, FileChannel file, Progress progress) {
        this.url = url;
        this.proxy = proxy;
        this.file = file;
        this.progress = progress;
    }

    /** What is needed to go on later; "" before the server's answer, or if it gave no validator. */
    public String validator() {
        return validator;
    }

    /** How much is in the file. */
    public long bytes() {
        return have;
    }

    /** How much there is; -1 = not known. */
    public long total() {
        return total;
    }

    /** What the server calls the file; "" = it has not said so in this run. */
    public String name() {
        return name;
    }

    /** Goes on with a file that holds so many bytes of the version that has the validator. Before run. */
    public void resume(String version, long bytes) {
        validator = version;
        have = bytes;
    }

    /** Stops: run ends with an exception. */
    public synchronized void cancel() {
        cancelled = true;
        if (socket != null) {
            closeQuietly(socket);
        }
    }

    @Override
    public void close() {
        cancel();
    }

    /** Fetches what is missing. When it returns, all is in the file. */
    public void run() throws IOException {
        for (int i = 0; i <= REDIRECTS; i++) {
            if (fetch()) {
                return;
            }
        }
        throw new Refused(0, "more than " + REDIRECTS + " redirects");
    }

    /** Asks once; false = somewhere else. */
    private boolean fetch() throws IOException {
        URI uri = parse(url);
        if (proxy == null) {
            throw new ConnectException("Tributary is starting");
        }
        Socket s = new Socket();
        try {
            synchronized (this) {
                if (cancelled) {
                    throw new IOException("cancelled");
                }
                socket = s;
            }
            s.connect(proxy, CONNECT_MILLIS);
            s.setSoTimeout(SILENT_MILLIS);
            s.getOutputStream().write(request(uri).getBytes("ISO-8859-1"));
            InputStream in = new BufferedInputStream(s.getInputStream(), 8 << 10);
            Head head = Head.read(in);
            String to = head.get("location");
            if (head.status >= 300 && head.status < 400 && head.status != 304 && to != null) {
                url = follow(uri, to);
                return false;
            }
            if (accept(head, in)) {
                body(head, in);
            }
            return true;
        } finally {
            closeQuietly(s);
        }
    }

    private String request(URI uri) {
        StringBuilder b = new StringBuilder();
        b.append("GET ").append(uri.toASCIIString()).append(" HTTP/1.1\r\nHost: ").append(uri.getRawAuthority());
        b.append("\r\nUser-Agent: Tributary\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n");
        if (have > 0) {
            b.append("Range: bytes=").append(have).append("-\r\nIf-Range: ").append(validator).append("\r\n");
        }
        return b.append("\r\n").toString();
    }

    /** Judges an answer, and begins the file anew if it is that of another version; false = nothing is missing. */
    private boolean accept(Head head, InputStream in) throws IOException {
        if (head.status == 206 && have > 0) {
            long[] range = head.contentRange();
            if (range == null || range[0] != have || !validator.equals(head.validator())) {
                throw new Refused(206, "the server answers with another part of the file");
            }
            total = range[2];
            return true;
        }
        if (head.status == 416 && have > 0 && head.lengthOfUnsatisfied() == have) { // all was there
            total = have;
            return false;
        }
        if (head.status != 200) {
            throw new Refused(head.status, reason(head, in));
        }
        name = FileName.of(head.get("content-disposition"), url);
        have = 0;
        file.truncate(0);
        total = head.length();
        validator = head.validator();
        return true;
    }

    /** Why there is no file: the daemon, which says that an answer is its own (RFC 9209), tells it in a line. */
    private static String reason(Head head, InputStream in) throws IOException {
        String by = head.get("proxy-status");
        if (by != null && by.startsWith("tributary;")) {
            String said = Head.line(in, new int[] {LONGEST_REASON});
            return said.startsWith(OURS) ? said.substring(OURS.length()) : said;
        }
        return "the server answers " + head.status + " " + head.reason;
    }

    private void body(Head head, InputStream in) throws IOException {
        InputStream body = head.chunked() ? new Chunks(in) : in;
        long left = head.chunked() ? -1 : head.length();
        file.position(have);
        while (left != 0) {
            int n = body.read(buffer, 0, (int) (left < 0 ? buffer.length : Math.min(left, buffer.length)));
            if (n < 0) {
                break;
            }
            for (ByteBuffer b = ByteBuffer.wrap(buffer, 0, n); b.hasRemaining(); ) {
                file.write(b);
            }
            have += n;
            left -= left < 0 ? 0 : n;
            progress.at(this);
        }
        if (left > 0 || total >= 0 && have != total) {
            throw new EOFException("the download broke off at " + have + " of " + total + " bytes");
        }
    }

    private static URI parse(String url) throws IOException {
        try {
            URI u = new URI(url.replace(" ", "%20")).parseServerAuthority();
            String scheme = u.getScheme() == null ? "" : u.getScheme().toLowerCase(Locale.ROOT);
            if (u.getHost() == null || u.getRawUserInfo() != null || !scheme.equals("http") && !scheme.equals("https")) {
                throw new Refused(0, "only http and https URLs without a password can be downloaded");
            }
            String path = u.getRawPath() == null || u.getRawPath().isEmpty() ? "/" : u.getRawPath();
            return new URI(scheme + "://" + u.getRawAuthority() + path + (u.getRawQuery() == null ? "" : "?" + u.getRawQuery()));
        } catch (URISyntaxException e) {
            throw new Refused(0, "this is no URL: " + e.getReason());
        }
    }

    private static String follow(URI from, String to) throws IOException {
        try {
            URI next = from.resolve(new URI(to.replace(" ", "%20")));
            if (from.getScheme().equals("https") && !"https".equalsIgnoreCase(next.getScheme())) {
                throw new Refused(0, "the server redirects from https to a connection that is not encrypted");
            }
            return next.toString();
        } catch (URISyntaxException | IllegalArgumentException e) {
            throw new Refused(0, "the server redirects to something that is no URL");
        }
    }

    private static void closeQuietly(Socket s) {
        try {
            s.close();
        } catch (IOException e) {
            // nothing is lost: all that counts has been read
        }
    }
}
