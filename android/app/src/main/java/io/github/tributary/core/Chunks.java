package io.github.tributary.core;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;

/** The content of a chunked body (RFC 9112 section 7.1). */
final class Chunks extends InputStream {
    private static final int LONGEST_LINE = 4 << 10;

    private final InputStream in;
    private long left; // of this chunk
    private boolean first = true;
    private boolean ended;

    Chunks(InputStream in) {
        this.in = in;
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] b, int off, int len) throws IOException {
        if (len == 0) {
            return 0;
        }
        if (left == 0 && !ended) {
            next();
        }
        if (ended) {
            return -1;
        }
        int n = in.read(b, off, (int) Math.min(len, left));
        if (n < 0) {
            throw new EOFException("the connection ended within the content");
        }
        left -= n;
        return n;
    }

    private void next() throws IOException {
        int[] most = {LONGEST_LINE};
        if (!first && !Head.line(in, most).isEmpty()) {
            throw new Download.Refused(0, "a chunk is longer than it says");
        }
        first = false;
        String size = Head.line(in, most);
        int end = size.indexOf(';');
        size = (end < 0 ? size : size.substring(0, end)).trim();
        if (!size.matches("[0-9a-fA-F]{1,15}")) {
            throw new Download.Refused(0, "a chunk has a length that is none");
        }
        left = Long.parseLong(size, 16);
        if (left == 0) {
            ended = true;
            while (!Head.line(in, most).isEmpty()) {
                // trailer fields
            }
        }
    }
}
