package io.github.tributary.core;

import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/**
 * Writes lines to a connection whose other end may be slow, on a thread of its own: senders never wait. Safe for
 * concurrent use.
 */
public final class LineWriter implements HostSession.Wire, Closeable {
    private static final int WAITING = 256;
    private static final String END = "";

    private final BlockingQueue<String> queue = new ArrayBlockingQueue<String>(WAITING);
    private final OutputStream out;
    private final Closeable connection;
    private final Thread thread;

    /** Writes to out, and closes the connection when that fails or the other end reads too slowly. */
    public LineWriter(OutputStream out, Closeable connection) {
        this.out = out;
        this.connection = connection;
        this.thread =
                new Thread("lines") {
                    @Override
                    public void run() {
                        write();
                    }
                };
        thread.start();
    }

    @Override
    public void send(String line) {
        if (!queue.offer(line)) {
            giveUp(); // the reader of the connection sees it
        }
    }

    private void write() {
        try {
            for (String line = queue.take(); !line.equals(END); line = queue.take()) {
                out.write(line.getBytes("UTF-8"));
            }
        } catch (IOException | InterruptedException e) {
            giveUp();
        }
    }

    private void giveUp() {
        try {
            connection.close();
        } catch (IOException e) {
            // already closed
        }
    }

    /** Ends the thread after it has written what was sent before. The connection stays open. */
    @Override
    public void close() {
        if (!queue.offer(END)) {
            thread.interrupt();
        }
    }
}
