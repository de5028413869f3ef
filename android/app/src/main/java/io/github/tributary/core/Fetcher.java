package io.github.tributary.core;

import java.io.FileDescriptor;
import java.io.IOException;

/** Fills files with what URLs lead to: the daemon does, and no byte passes through here. */
public interface Fetcher {
    /** How far a fill is. */
    final class Step {
        /** What the server calls the file; "" = it has not said so in this fill. */
        public final String name;

        public final Version version;

        /** That the file holds, from its beginning on. */
        public final long bytes;

        /** Of these, those that survive a dead battery. */
        public final long kept;

        /** What each network has brought in this fill. */
        public final Shares brought;

        public Step(String name, Version version, long bytes, long kept, Shares brought) {
            this.name = name;
            this.brought = brought;
            this.version = version;
            this.bytes = bytes;
            this.kept = kept;
        }
    }

    /** Hears how far a fill is, on another thread. */
    interface Listener {
        void at(Step s);
    }

    /** A fill failed. */
    final class Failed extends IOException {
        private static final long serialVersionUID = 1;

        /** It may work another time, without anybody doing anything. */
        public final boolean again;

        public final transient Failure why;

        public Failed(Failure why, boolean again) {
            super(why.code + " " + why.detail);
            this.why = why;
            this.again = again;
        }
    }

    /** A fill that runs. */
    interface Fill {
        /** Waits for its end: true = all is there, false = it was stopped. Before that, the listener has heard the last step. */
        boolean await() throws Failed, InterruptedException;

        void stop();
    }

    /** Begins to fill a file from where the download is on. The file stays open until the fill has ended. */
    Fill fill(DownloadState from, FileDescriptor file, Listener listener) throws Failed;
}
