package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.app.Application;
import android.provider.MediaStore;
import java.io.File;
import java.io.FileNotFoundException;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

/** Files of downloads, with a system's store of files that the test makes. */
@RunWith(RobolectricTestRunner.class)
public class StoreTest {
    private final Application app = RuntimeEnvironment.getApplication();

    @Test
    @Config(sdk = {29, 34})
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
}
