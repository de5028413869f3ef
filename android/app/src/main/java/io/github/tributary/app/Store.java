package io.github.tributary.app;

import android.app.DownloadManager;
import android.content.ContentResolver;
import android.content.ContentValues;
import android.content.Context;
import android.content.Intent;
import android.media.MediaScannerConnection;
import android.net.Uri;
import android.os.Build;
import android.os.Environment;
import android.os.ParcelFileDescriptor;
import android.provider.MediaStore;
import android.webkit.MimeTypeMap;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.Target;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.Locale;

/**
 * The place for downloaded files: the phone's Downloads; before Android 10, without a permission, the app's own folder.
 */
final class Store implements Target.Files {
    private static final String PART = ".part";
    private static final String APK = "application/vnd.android.package-archive";

    private final Context context;

    Store(Context context) {
        this.context = context;
    }

    @Override
    public Target create(String name) throws IOException {
        return Build.VERSION.SDK_INT >= 29 ? new Shared(name) : new Own(name);
    }

    @Override
    public Target at(String place) {
        return place.startsWith(ContentResolver.SCHEME_CONTENT + ":") ? new Shared(Uri.parse(place)) : new Own(new File(place));
    }

    /** A file in the collection of downloads, hidden until it is complete. */
    private final class Shared implements Target {
        private final ContentResolver resolver = context.getContentResolver();
        private final Uri uri;

        Shared(String name) throws IOException {
            ContentValues v = new ContentValues();
            v.put(MediaStore.MediaColumns.DISPLAY_NAME, name);
            v.put(MediaStore.MediaColumns.MIME_TYPE, type(name));
            v.put(MediaStore.MediaColumns.IS_PENDING, 1);
            try {
                uri = resolver.insert(MediaStore.Downloads.EXTERNAL_CONTENT_URI, v);
            } catch (RuntimeException e) { // whatever the system's media store throws
                throw new IOException("the system makes no file: " + e.getMessage(), e);
            }
            if (uri == null) {
                throw new IOException("the system makes no file");
            }
        }

        Shared(Uri uri) {
            this.uri = uri;
        }

        @Override
        public String place() {
            return uri.toString();
        }

        @Override
        public Opened open() throws IOException {
            ContentValues v = new ContentValues();
            v.put(MediaStore.MediaColumns.IS_PENDING, 1); // restarts the week after which the system deletes it
            ParcelFileDescriptor fd;
            try {
                if (resolver.update(uri, v, null, null) == 0) {
                    throw new FileNotFoundException("the file is gone");
                }
                fd = resolver.openFileDescriptor(uri, "rw");
            } catch (RuntimeException e) {
                throw new IOException("the file is gone: " + e.getMessage(), e);
            }
            if (fd == null) {
                throw new IOException("the file is gone");
            }
            return new Opened(fd.getFileDescriptor(), fd);
        }

        @Override
        public String finish(String name) throws IOException {
            ContentValues v = new ContentValues();
            v.put(MediaStore.MediaColumns.DISPLAY_NAME, name);
            v.put(MediaStore.MediaColumns.MIME_TYPE, type(name)); // else the first type sets the extension
            v.put(MediaStore.MediaColumns.IS_PENDING, 0);
            try {
                publish(v);
            } catch (IOException e) { // the name may be taken: the file keeps the first one
                v = new ContentValues();
                v.put(MediaStore.MediaColumns.IS_PENDING, 0);
                publish(v);
            }
            return place();
        }

        private void publish(ContentValues v) throws IOException {
            int rows;
            try {
                rows = resolver.update(uri, v, null, null);
            } catch (RuntimeException e) {
                throw new IOException("the file cannot be shown: " + e.getMessage(), e);
            }
            if (rows == 0) {
                throw new IOException("the file is gone");
            }
        }

        @Override
        public void delete() throws IOException {
            try {
                resolver.delete(uri, null, null);
            } catch (RuntimeException e) {
                throw new IOException("the file cannot be deleted: " + e.getMessage(), e);
            }
        }
    }

    private final class Own implements Target {
        private final File part;

        Own(String name) throws IOException {
            File dir = folder(context);
            if (dir == null || !dir.isDirectory() && !dir.mkdirs()) {
                throw new IOException("there is no storage");
            }
            part = new File(dir, free(dir, name, null).getName() + PART);
            if (!part.createNewFile()) {
                throw new IOException("there is such a file already");
            }
        }

        Own(File part) {
            this.part = part;
        }

        @Override
        public String place() {
            return part.getPath();
        }

        @Override
        public Opened open() throws IOException {
            if (!part.exists()) { // otherwise it would be recreated, with a hole in place of the bytes
                throw new FileNotFoundException("the file is gone");
            }
            RandomAccessFile f = new RandomAccessFile(part, "rw");
            return new Opened(f.getFD(), f);
        }

        @Override
        public String finish(String name) throws IOException {
            File dir = part.getParentFile();
            File file = free(dir, name, part);
            if (!part.renameTo(file)) {
                throw new IOException("the file cannot be named " + name);
            }
            MediaScannerConnection.scanFile(context, new String[] {file.getPath()}, null, null); // shows it to other apps
            return file.getPath();
        }

        @Override
        public void delete() throws IOException {
            if (!part.delete()) {
                throw new IOException("the file cannot be deleted");
            }
        }
    }

    /**
     * Returns the phone's Downloads if the user lets the app write there, else the app's own folder; null = there is
     * none. Before Android 10.
     */
    @SuppressWarnings("deprecation") // newer versions have the collection
    private static File folder(Context context) {
        if (StoragePermission.given(context)) {
            return Environment.getExternalStoragePublicDirectory(Environment.DIRECTORY_DOWNLOADS);
        }
        return context.getExternalFilesDir(Environment.DIRECTORY_DOWNLOADS);
    }

    /**
     * Returns an intent that makes another app show a complete file; null = it is not complete. For an APK the system's
     * list of downloads is shown: Android silently refuses to install one at the request of an app without the
     * permission for that.
     */
    static Intent view(DownloadState s) {
        if (s.phase != DownloadState.Phase.DONE) {
            return null;
        }
        if (type(s.name).equals(APK)) {
            return new Intent(DownloadManager.ACTION_VIEW_DOWNLOADS).addFlags(Intent.FLAG_ACTIVITY_NEW_TASK);
        }
        boolean shared = s.place.startsWith(ContentResolver.SCHEME_CONTENT + ":");
        Uri uri = shared ? Uri.parse(s.place) : DownloadedFiles.uri(s.place);
        return new Intent(Intent.ACTION_VIEW)
                .setDataAndType(uri, type(s.name))
                .addFlags(Intent.FLAG_GRANT_READ_URI_PERMISSION | Intent.FLAG_ACTIVITY_NEW_TASK);
    }

    /** Returns the media type for the extension of a name. */
    static String type(String name) {
        int dot = name.lastIndexOf('.');
        String end = dot < 0 ? "" : name.substring(dot + 1).toLowerCase(Locale.ROOT);
        String type = MimeTypeMap.getSingleton().getMimeTypeFromExtension(end);
        return type == null ? "application/octet-stream" : type;
    }

    /** Returns a name that no file has and no other unfinished file than part will get: "a.zip", "a (2).zip", ... */
    static File free(File dir, String name, File part) {
        int dot = name.lastIndexOf('.');
        String stem = dot > 0 ? name.substring(0, dot) : name;
        String end = dot > 0 ? name.substring(dot) : "";
        File f = new File(dir, name);
        for (int i = 2; f.exists() || taken(new File(f.getPath() + PART), part); i++) {
            f = new File(dir, stem + " (" + i + ")" + end);
        }
        return f;
    }

    private static boolean taken(File other, File part) {
        return other.exists() && !other.equals(part);
    }
}
