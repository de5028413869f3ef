package io.github.tributary.app;

import android.content.ContentResolver;
import android.content.ContentValues;
import android.content.Context;
import android.net.Uri;
import android.os.Build;
import android.os.Environment;
import android.os.ParcelFileDescriptor;
import android.provider.MediaStore;
import java.io.Closeable;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileChannel;

/** Where downloaded files go: into the phone's Downloads; before Android 10 into the app's own, which needs no permission. */
class Store {
    /** A file that is being downloaded. */
    interface Target {
        /** The file, to be written; close gives it back. */
        Opened open() throws IOException;

        /** All of it is there. */
        void finish() throws IOException;

        void delete();
    }

    /** An open file. */
    static final class Opened implements Closeable {
        final FileChannel channel;
        private final Closeable owner;

        Opened(FileChannel channel, Closeable owner) {
            this.channel = channel;
            this.owner = owner;
        }

        @Override
        public void close() throws IOException {
            channel.close();
            owner.close();
        }
    }

    private final Context context;

    Store(Context context) {
        this.context = context;
    }

    Target create(String name) throws IOException {
        return Build.VERSION.SDK_INT >= 29 ? new Shared(name) : new Own(name);
    }

    /** In the collection of downloads, not shown before it is whole. */
    private final class Shared implements Target {
        private final ContentResolver resolver = context.getContentResolver();
        private final Uri uri;

        Shared(String name) throws IOException {
            ContentValues v = new ContentValues();
            v.put(MediaStore.MediaColumns.DISPLAY_NAME, name);
            v.put(MediaStore.MediaColumns.IS_PENDING, 1);
            uri = resolver.insert(MediaStore.Downloads.EXTERNAL_CONTENT_URI, v);
            if (uri == null) {
                throw new IOException("the system makes no file");
            }
        }

        @Override
        public Opened open() throws IOException {
            ParcelFileDescriptor fd = resolver.openFileDescriptor(uri, "rw");
            if (fd == null) {
                throw new IOException("the file is gone");
            }
            return new Opened(new FileOutputStream(fd.getFileDescriptor()).getChannel(), fd);
        }

        @Override
        public void finish() {
            ContentValues v = new ContentValues();
            v.put(MediaStore.MediaColumns.IS_PENDING, 0);
            resolver.update(uri, v, null, null);
        }

        @Override
        public void delete() {
            resolver.delete(uri, null, null);
        }
    }

    private final class Own implements Target {
        private final File file;
        private final File part;

        Own(String name) throws IOException {
            File dir = context.getExternalFilesDir(Environment.DIRECTORY_DOWNLOADS);
            if (dir == null) {
                throw new IOException("there is no storage");
            }
            file = free(dir, name);
            part = new File(dir, file.getName() + ".part");
        }

        @Override
        public Opened open() throws IOException {
            RandomAccessFile f = new RandomAccessFile(part, "rw");
            return new Opened(f.getChannel(), f);
        }

        @Override
        public void finish() throws IOException {
            if (!part.renameTo(file)) {
                throw new IOException("the file cannot be named " + file.getName());
            }
        }

        @Override
        public void delete() {
            if (!part.delete()) {
                part.deleteOnExit();
            }
        }
    }

    /** A name that no file has: "a.zip", "a (2).zip", ... */
    static File free(File dir, String name) {
        int dot = name.lastIndexOf('.');
        String stem = dot > 0 ? name.substring(0, dot) : name;
        String end = dot > 0 ? name.substring(dot) : "";
        File f = new File(dir, name);
        for (int i = 2; f.exists() || new File(f.getPath() + ".part").exists(); i++) {
            f = new File(dir, stem + " (" + i + ")" + end);
        }
        return f;
    }
}
