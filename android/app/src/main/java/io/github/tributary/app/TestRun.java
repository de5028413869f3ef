package io.github.tributary.app;

import android.content.Context;
import android.os.Handler;
import android.os.Looper;
import android.os.SystemClock;
import io.github.tributary.core.DownloadJob;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.Fetcher;
import io.github.tributary.core.Target;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;

/**
 * A download that shows what the networks bring together, and leaves no file. It ends after some time or number of
 * bytes. For the main thread.
 */
class TestRun {
    /** A large file that many people download anyway, from servers all over the world that support ranges. */
    static final String URL = "https://deb.debian.org/debian/dists/stable/main/installer-amd64/current/images/netboot/mini.iso";

    static final long MOST_BYTES = 50_000_000;
    static final long MILLIS = 20_000; // mobile data takes some seconds to come up

    private static final long PATIENCE_MILLIS = 60_000; // for the first byte

    private final Context context;
    private final Handler main = new Handler(Looper.getMainLooper());
    private DownloadJob job; // null = none runs
    private DownloadState state; // null = none so far
    private long firstByte; // arrival time; 0 = none yet
    private long lastByte;

    private final Runnable end =
            new Runnable() {
                @Override
                public void run() {
                    stop();
                }
            };

    TestRun(Context context) {
        this.context = context;
    }

    /** Returns what fills the file. */
    Fetcher fetcher() {
        return App.fetches(context);
    }

    boolean runs() {
        return job != null;
    }

    /** Returns the state of the running or last test; null = none so far. */
    DownloadState state() {
        return state;
    }

    /** Returns the time from the first byte to the last one so far. */
    long millis() {
        return lastByte - firstByte;
    }

    /** Starts a test. The daemon must be running or about to start. */
    void start(String url) {
        if (job != null) {
            return;
        }
        state = DownloadState.begin(url);
        firstByte = 0;
        lastByte = 0;
        job =
                new DownloadJob(
                        state,
                        new Scratch(),
                        fetcher(),
                        new DownloadJob.Listener() {
                            @Override
                            public void now(final DownloadState s) {
                                main.post(
                                        new Runnable() {
                                            @Override
                                            public void run() {
                                                told(s);
                                            }
                                        });
                            }
                        });
        job.start();
        main.postDelayed(end, PATIENCE_MILLIS);
    }

    private void told(DownloadState s) {
        if (s.bytes > 0) {
            lastByte = SystemClock.elapsedRealtime();
            if (firstByte == 0) {
                firstByte = lastByte;
                main.removeCallbacks(end);
                main.postDelayed(end, MILLIS);
            }
        }
        state = s;
        if (!s.active()) {
            job = null;
            main.removeCallbacks(end);
        } else if (s.bytes >= MOST_BYTES) {
            stop();
        }
    }

    /** Ends the test and keeps its result. */
    void stop() {
        main.removeCallbacks(end);
        if (job != null) {
            job.giveUp();
        }
    }

    /** A single file, which is deleted in any case. */
    private final class Scratch implements Target.Files {
        @Override
        public Target create(String name) {
            return new Temporary(new File(context.getCacheDir(), "test.part"));
        }

        @Override
        public Target at(String place) {
            return new Temporary(new File(place));
        }
    }

    private static final class Temporary implements Target {
        private final File file;

        Temporary(File file) {
            this.file = file;
        }

        @Override
        public String place() {
            return file.getPath();
        }

        @Override
        public Opened open() throws IOException {
            RandomAccessFile f = new RandomAccessFile(file, "rw");
            f.setLength(0);
            return new Opened(f.getFD(), f);
        }

        @Override
        public String finish(String name) throws IOException {
            delete();
            return place();
        }

        @Override
        public void delete() throws IOException {
            if (!file.delete()) {
                throw new FileNotFoundException(file.getPath());
            }
        }
    }
}
