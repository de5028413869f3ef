package io.github.tributary.core;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.concurrent.CountDownLatch;

/** Files of downloads in a test's folder. */
public final class FolderFiles implements Target.Files {
    public final File dir;

    /** The last file finished, under the name from the server; "" = none. */
    public volatile String finished = "";

    public final CountDownLatch deleted = new CountDownLatch(1);
    public volatile int created;

    /** Whether there is no room for a finished file. */
    public volatile boolean full;

    public FolderFiles(File dir) {
        this.dir = dir;
    }

    @Override
    public Target create(String name) throws IOException {
        created++;
        new File(dir, name).createNewFile();
        return at(new File(dir, name).getPath());
    }

    @Override
    public Target at(String place) {
        return new Target() {
            @Override
            public String place() {
                return place;
            }

            @Override
            public Opened open() throws IOException {
                if (!new File(place).exists()) {
                    throw new FileNotFoundException(place);
                }
                RandomAccessFile f = new RandomAccessFile(place, "rw");
                return new Opened(f.getFD(), f);
            }

            @Override
            public String finish(String name) throws IOException {
                if (full) {
                    throw new IOException("no room");
                }
                finished = name;
                return place;
            }

            @Override
            public void delete() throws IOException {
                if (!new File(place).delete()) {
                    throw new IOException("it is not there");
                }
                deleted.countDown();
            }
        };
    }
}
