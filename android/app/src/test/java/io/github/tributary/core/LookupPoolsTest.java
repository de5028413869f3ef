package io.github.tributary.core;

import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** A network that does not answer delays no other. */
public class LookupPoolsTest {
    @Test
    public void networksAreApart() throws InterruptedException {
        LookupPools pools = new LookupPools();
        CountDownLatch never = new CountDownLatch(1);
        assertThrows(
                RejectedExecutionException.class,
                () -> {
                    for (int i = 0; i < 1000; i++) {
                        pools.execute(1, () -> await(never));
                    }
                });
        for (int network = 2; network < 200; network++) {
            CountDownLatch done = new CountDownLatch(1);
            pools.execute(network, done::countDown);
            assertTrue("network " + network + " waits", done.await(10, TimeUnit.SECONDS));
        }
        pools.close();
        assertThrows(RejectedExecutionException.class, () -> pools.execute(3, never::countDown));
        never.countDown();
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            // closed
        }
    }
}
