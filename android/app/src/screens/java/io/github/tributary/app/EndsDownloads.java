package io.github.tributary.app;

import static org.robolectric.Shadows.shadowOf;

import android.os.Looper;
import org.junit.rules.ExternalResource;
import org.robolectric.RuntimeEnvironment;

/**
 * Ends the downloads of a test. Robolectric keeps the main looper and the notifications across tests, so a download
 * that is still running would appear in the next test.
 */
final class EndsDownloads extends ExternalResource {
    @Override
    protected void after() {
        App.downloads(RuntimeEnvironment.getApplication()).pauseAll();
        for (int i = 0; i < 6000; i++) {
            boolean ended = !running();
            shadowOf(Looper.getMainLooper()).idle(); // their last reports
            if (ended) {
                return;
            }
            try {
                Thread.sleep(10);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
        throw new AssertionError("a download does not end");
    }

    private static boolean running() {
        for (Thread t : Thread.getAllStackTraces().keySet()) {
            if (t.getName().equals("download")) {
                return true;
            }
        }
        return false;
    }
}
