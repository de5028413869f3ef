package io.github.tributary.core;

import java.io.Closeable;
import java.io.IOException;
import java.nio.channels.FileChannel;

/** A file that is being downloaded. */
public interface Target {
    /** Where such files are. Calls may take a while. */
    interface Files {
        /** A new one, to be called so. */
        Target create(String name) throws IOException;

        /** That of an earlier process; see {@link Target#place}. */
        Target at(String place) throws IOException;
    }

    /** A name for it that outlives the process. */
    String place();

    /** The file, to be written; close gives it back. */
    Opened open() throws IOException;

    /** All of it is there, and the server calls it so. */
    void finish(String name) throws IOException;

    void delete() throws IOException;

    /** An open file. */
    final class Opened implements Closeable {
        public final FileChannel channel;
        private final Closeable owner;

        public Opened(FileChannel channel, Closeable owner) {
            this.channel = channel;
            this.owner = owner;
        }

        @Override
        public void close() throws IOException {
            channel.close();
            owner.close();
        }
    }
}
