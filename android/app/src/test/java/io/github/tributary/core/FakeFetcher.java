package io.github.tributary.core;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A daemon that fills files with "0123456789", five bytes at a time or all at once, as the test decides. */
public final class FakeFetcher implements Fetcher {
    public static final String CONTENT = "0123456789";

    public final List<Long> asked = new CopyOnWriteArrayList<Long>(); // where each fill started

    /** Why fills end; null = they do not fail. */
    public volatile Failed failure;

    /** Whether the last fill may use only networks that cost nothing. */
    public volatile boolean unmetered;

    /** Fills stop in the middle and fail there, or wait to be stopped. */
    public volatile boolean half;

    public volatile Runnable whenAsked = () -> {};
    public volatile String name = "c.zip";
    public volatile String validator = "\"v\"";

    @Override
    public Fill fill(DownloadState from, FileDescriptor file, Listener listener) throws Failed {
        asked.add(from.kept);
        unmetered = from.unmetered;
        whenAsked.run();
        return new Half(from, file, listener);
    }

    private final class Half implements Fill {
        private final DownloadState from;
        private final FileDescriptor file;
        private final Listener listener;
        private final Failed failure; // how it ends: a later change by the test applies to the next fill
        private final boolean half;
        private boolean stopped;

        Half(DownloadState from, FileDescriptor file, Listener listener) {
            this.from = from;
            this.file = file;
            this.listener = listener;
            failure = FakeFetcher.this.failure; // before half: a test that resets both sets half first
            half = FakeFetcher.this.half;
        }

        @Override
        public boolean await() throws Failed, InterruptedException {
            int end = half ? 5 : 10;
            try {
                @SuppressWarnings("resource") // the file stays open
                FileOutputStream out = new FileOutputStream(file);
                out.getChannel().write(java.nio.ByteBuffer.wrap(CONTENT.getBytes("UTF-8"), (int) from.kept, end - (int) from.kept), from.kept);
            } catch (IOException e) {
                throw new Failed(Failure.here("test", e), false);
            }
            listener.at(new Step(name, new Version(validator, "m", 10, "where"), end, end, Shares.NONE.plus(Net.Kind.WIFI, end - from.kept)));
            if (failure != null) {
                throw failure;
            }
            return !half || untilStopped();
        }

        private synchronized boolean untilStopped() throws InterruptedException {
            while (!stopped) {
                wait();
            }
            return false;
        }

        @Override
        public synchronized void stop() {
            stopped = true;
            notifyAll();
        }
    }
}
