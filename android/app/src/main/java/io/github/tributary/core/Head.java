package io.github.tributary.core;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The head of an answer of the daemon, which has made it well-formed. */
final class Head {
    private static final int MOST = 128 << 10; // bytes
    private static final Pattern STATUS = Pattern.compile("HTTP/1\\.[01] ([1-9]\\d\\d)(?: (.*))?");
    private static final Pattern RANGE = Pattern.compile("bytes (\\d{1,18})-(\\d{1,18})/(\\d{1,18})");

    private static final Pattern UNSATISFIED = Pattern.compile("bytes \\*/(\\d{1,18})");

    final int status;
    final String reason;
    private final Map<String, String> fields = new HashMap<String, String>();

    private Head(int status, String reason) {
        this.status = status;
        this.reason = reason;
    }

    /** Reads the head of a final answer. */
    static Head read(InputStream in) throws IOException {
        int[] left = {MOST};
        while (true) {
            Matcher m = STATUS.matcher(line(in, left));
            if (!m.matches()) {
                throw new Download.Refused(0, "the daemon does not answer in HTTP");
            }
            Head h = new Head(Integer.parseInt(m.group(1)), m.group(2) == null ? "" : m.group(2));
            for (String s = line(in, left); !s.isEmpty(); s = line(in, left)) {
                int colon = s.indexOf(':');
                if (colon <= 0) {
                    throw new Download.Refused(h.status, "the answer has a field without a name");
                }
                h.fields.put(s.substring(0, colon).toLowerCase(Locale.ROOT), s.substring(colon + 1).trim());
            }
            if (h.status >= 200) {
                return h;
            }
        }
    }

    /** Reads a line without its end. */
    static String line(InputStream in, int[] left) throws IOException {
        StringBuilder b = new StringBuilder();
        while (true) {
            int c = in.read();
            if (c < 0) {
                throw new EOFException("the connection ended within the head of an answer");
            }
            if (--left[0] < 0) {
                throw new Download.Refused(0, "the head of the answer is too long");
            }
            if (c == '\n') {
                int end = b.length();
                return end > 0 && b.charAt(end - 1) == '\r' ? b.substring(0, end - 1) : b.toString();
            }
            b.append((char) c);
        }
    }

    String get(String name) {
        return fields.get(name);
    }

    boolean chunked() {
        return "chunked".equalsIgnoreCase(get("transfer-encoding"));
    }

    /** Content-Length, -1 if there is none. */
    long length() throws IOException {
        String s = get("content-length");
        if (s == null || chunked()) {
            return -1;
        }
        if (!s.matches("\\d{1,18}")) {
            throw new Download.Refused(status, "the answer has a length that is none");
        }
        return Long.parseLong(s);
    }

    /** First, last and total of Content-Range; null if there is none, or not all three. */
    long[] contentRange() {
        String s = get("content-range");
        Matcher m = s == null ? null : RANGE.matcher(s);
        if (m == null || !m.matches()) {
            return null;
        }
        return new long[] {Long.parseLong(m.group(1)), Long.parseLong(m.group(2)), Long.parseLong(m.group(3))};
    }

    /** The length that a 416 tells (RFC 9110 section 14.4); -1 if it does not. */
    long lengthOfUnsatisfied() {
        String s = get("content-range");
        Matcher m = s == null ? null : UNSATISFIED.matcher(s);
        return m == null || !m.matches() ? -1 : Long.parseLong(m.group(1));
    }

    /** What names the version: a strong entity tag (RFC 9110 section 8.8.1); "" if there is none. */
    String validator() {
        String tag = get("etag");
        return tag == null || tag.startsWith("W/") ? "" : tag;
    }
}
