package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** Senders never wait for the daemon. */
public class LineWriterTest {
    private final CountDownLatch closed = new CountDownLatch(1);

    private boolean gaveUp() throws InterruptedException {
        return closed.await(10, TimeUnit.SECONDS);
    }

    @Test
    public void writesAllInOrder() throws InterruptedException {
        CountDownLatch three = new CountDownLatch(3);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (LineWriter w =
                new LineWriter(
                        new OutputStream() {
                            @Override
                            public void write(int b) {
                                out.write(b);
                                if (b == '\n') {
                                    three.countDown();
                                }
                            }
                        },
                        closed::countDown)) {
            w.send("a\n");
            w.send("ä\n");
            w.send("b\n");
        }
        assertTrue(three.await(10, TimeUnit.SECONDS));
        assertEquals("a\nä\nb\n", new String(out.toByteArray(), java.nio.charset.StandardCharsets.UTF_8));
        assertEquals("closed a connection that works", 1, closed.getCount());
    }

    @Test
    public void givesUpWhoDoesNotListen() throws InterruptedException {
        LineWriter w =
                new LineWriter(
                        new OutputStream() {
                            @Override
                            public void write(int b) throws IOException {
                                throw new IOException("broken pipe");
                            }
                        },
                        closed::countDown);
        w.send("a\n");
        assertTrue(gaveUp());
    }

    @Test(timeout = 20_000)
    public void givesUpWhoDoesNotRead() throws InterruptedException {
        CountDownLatch never = new CountDownLatch(1);
        LineWriter w =
                new LineWriter(
                        new OutputStream() {
                            @Override
                            public void write(int b) throws IOException {
                                try {
                                    never.await();
                                } catch (InterruptedException e) {
                                    throw new IOException(e);
                                }
                            }
                        },
                        closed::countDown);
        for (int i = 0; i < 1000; i++) {
            w.send("a\n");
        }
        assertTrue(gaveUp());
        w.close();
        never.countDown();
    }
}
