package io.github.tributary.app;

import android.content.ContentProvider;
import android.content.ContentUris;
import android.content.ContentValues;
import android.database.Cursor;
import android.net.Uri;
import android.os.ParcelFileDescriptor;
import java.io.File;
import java.io.FileNotFoundException;
import java.util.ArrayList;
import java.util.List;

/** The system's media store, with room for one file. */
public final class FakeMedia extends ContentProvider {
    static final List<ContentValues> said = new ArrayList<ContentValues>();
    static boolean gone;

    @Override
    public boolean onCreate() {
        said.clear();
        gone = false;
        return true;
    }

    @Override
    public Uri insert(Uri uri, ContentValues v) {
        said.add(v);
        return ContentUris.withAppendedId(uri, 1);
    }

    @Override
    public int update(Uri uri, ContentValues v, String where, String[] args) {
        said.add(v);
        return gone ? 0 : 1;
    }

    @Override
    public ParcelFileDescriptor openFile(Uri uri, String mode) throws FileNotFoundException {
        int how = ParcelFileDescriptor.MODE_READ_WRITE | ParcelFileDescriptor.MODE_CREATE;
        return ParcelFileDescriptor.open(new File(getContext().getCacheDir(), "file"), how);
    }

    @Override
    public int delete(Uri uri, String where, String[] args) {
        gone = true;
        return 1;
    }

    @Override
    public Cursor query(Uri uri, String[] columns, String where, String[] args, String order) {
        return null;
    }

    @Override
    public String getType(Uri uri) {
        return null;
    }
}
