package io.github.tributary.core;

import java.io.FileDescriptor;
import java.io.IOException;

/** Fills files with the contents of URLs. The daemon does the work, and no byte passes through here. */
public interface Fetcher {
    /** The progress of a fill. */
    final class Step {
        /** The server's name for the file; "" = not reported in this fill. */
        public final String name;

        public final Version version;

        /** The number of bytes that the file holds, from its beginning. */
        public final long bytes;

        /** How many of these survive a dead battery. */
        public final long kept;

        /** The bytes that each network brought in this fill. */
        public final Shares brought;

        public Step(String name, Version version, long bytes, long kept, Shares brought) {
            this.name = name;
            this.brought = brought;
            this.version = version;
            this.bytes = bytes;
            this.kept = kept;
        }
    }

    /** Hears of the progress of a fill, on another thread. */
    interface Listener {
        void at(Step s);
    }

    /** A fill failed. */
    final class Failed extends IOException {
        private static final long serialVersionUID = 1;

        /** Whether it may work later without anybody doing anything. */
        public final boolean again;

        public final transient Failure why;

        public Failed(Failure why, boolean again) {
            super(why.code + " " + why.detail);
            this.why = why;
            this.again = again;
        }
    }

    /** A running fill. */
    interface Fill {
        /**
         * Waits for its end: true = the file is complete, false = it was stopped. The listener has heard the last step
         * by then.
         */
        boolean await() throws Failed, InterruptedException;

        void stop();
    }

    /** Starts to fill a file from the download's current position. The file must stay open until the fill has ended. */
    Fill fill(DownloadState from, FileDescriptor file, Listener listener) throws Failed;
}
