package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.app.Application;
import android.app.DownloadManager;
import android.content.Intent;
import android.database.Cursor;
import android.os.Environment;
import android.provider.MediaStore;
import android.provider.OpenableColumns;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.Target;
import java.io.File;
import java.io.FileNotFoundException;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

/** Files of downloads, with a media store made by the test. */
@RunWith(RobolectricTestRunner.class)
public class StoreTest {
    private final Application app = RuntimeEnvironment.getApplication();

    @Test
    @Config(sdk = {29, 36})
    public void anUnfinishedFileIsRenewed() throws Exception {
        Robolectric.setupContentProvider(FakeMedia.class, MediaStore.AUTHORITY);
        Store store = new Store(app);
        String place = store.create("a.iso").place();
        store.at(place).open(); // Robolectric cannot close it from Android 10 on
        assertEquals("its week does not begin anew", 2, FakeMedia.said.size());
        assertEquals((Integer) 1, FakeMedia.said.get(1).getAsInteger(MediaStore.MediaColumns.IS_PENDING));
        store.at(place).finish("a.iso");
        assertEquals((Integer) 0, FakeMedia.said.get(2).getAsInteger(MediaStore.MediaColumns.IS_PENDING));
        store.at(place).delete();
        assertThrows(FileNotFoundException.class, () -> store.at(place).open());
    }

    @Test
    @Config(sdk = 26)
    public void aDeletedFileIsNotMadeWithAHole() throws Exception {
        Store store = new Store(app);
        String place = store.create("a.iso").place();
        store.at(place).open().close();
        assertTrue(new File(place).delete());
        assertThrows(FileNotFoundException.class, () -> store.at(place).open());
    }

    private DownloadState done(String name) throws Exception {
        Store store = new Store(app);
        Target t = store.create(name);
        t.open().close();
        String place = t.finish(name);
        return DownloadState.begin("https://example.com/" + name).with(place).in(DownloadState.Phase.DONE);
    }

    @Test
    @Config(sdk = 26)
    public void goesToDownloadsIfTheUserAgrees() throws Exception {
        File own = app.getExternalFilesDir(Environment.DIRECTORY_DOWNLOADS);
        assertEquals(own, new File(done("a.pdf").place).getParentFile());
        shadowOf(app).grantPermissions(Manifest.permission.WRITE_EXTERNAL_STORAGE);
        File shared = Environment.getExternalStoragePublicDirectory(Environment.DIRECTORY_DOWNLOADS);
        DownloadState s = done("a.pdf");
        assertEquals("gone when the app is uninstalled", new File(shared, "a.pdf"), new File(s.place));
        assertTrue(new File(s.place).exists());
    }

    @Test
    @Config(sdk = 26)
    public void otherAppsOpenIt() throws Exception {
        DownloadState s = done("a.pdf");
        Intent view = Store.view(s);
        assertEquals(Intent.ACTION_VIEW, view.getAction());
        assertTrue((view.getFlags() & Intent.FLAG_GRANT_READ_URI_PERMISSION) != 0);
        Robolectric.setupContentProvider(DownloadedFiles.class, "io.github.tributary.files");
        app.getContentResolver().openFileDescriptor(view.getData(), "r").close();
        assertThrows(FileNotFoundException.class, () -> app.getContentResolver().openFileDescriptor(view.getData(), "rw"));
        try (Cursor c = app.getContentResolver().query(view.getData(), null, null, null, null)) {
            assertTrue(c.moveToFirst());
            assertEquals("a.pdf", c.getString(c.getColumnIndex(OpenableColumns.DISPLAY_NAME)));
        }
    }

    @Test
    @Config(sdk = {26, 36})
    public void anApkIsShownWhereTheSystemInstallsIt() {
        DownloadState s = DownloadState.begin("https://example.com/a.apk").with("content://x/1").in(DownloadState.Phase.DONE);
        assertEquals(DownloadManager.ACTION_VIEW_DOWNLOADS, Store.view(s).getAction());
    }
}
