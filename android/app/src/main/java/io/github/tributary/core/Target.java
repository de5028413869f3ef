package io.github.tributary.core;

import java.io.Closeable;
import java.io.FileDescriptor;
import java.io.IOException;

/** A file that is being downloaded. */
public interface Target {
    /** The place for such files. Calls may take a while. */
    interface Files {
        /** Creates a new file with that name. */
        Target create(String name) throws IOException;

        /** Returns the file of an earlier process; see {@link Target#place}. */
        Target at(String place) throws IOException;
    }

    /** Returns a name for it that outlives the process. */
    String place();

    /** Opens the file for writing; close releases it. Throws FileNotFoundException if it is gone. */
    Opened open() throws IOException;

    /** Completes the file under the server's name. Returns its place from now on. */
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
