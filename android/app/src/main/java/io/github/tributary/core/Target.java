package io.github.tributary.core;

import java.io.Closeable;
import java.io.FileDescriptor;
import java.io.IOException;

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

    /** The file, to be written; close gives it back. FileNotFoundException = it is gone. */
    Opened open() throws IOException;

    /** All of it is there, and the server calls it so. Returns its place from now on. */
    String finish(String name) throws IOException;

    void delete() throws IOException;

    /** An open file. */
    final class Opened implements Closeable {
        public final FileDescriptor descriptor;
        private final Closeable owner;

        public Opened(FileDescriptor descriptor, Closeable owner) {
            this.descriptor = descriptor;
            this.owner = owner;
        }

        @Override
        public void close() throws IOException {
            owner.close();
        }
    }
}
