package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import android.widget.Toast;
import io.github.tributary.R;
import io.github.tributary.core.FileName;
import io.github.tributary.core.SharedText;

/**
 * Takes a link that another app shares or opens, and has it downloaded. Who shares has chosen this app; what is opened may be
 * a web page's idea, and is asked about.
 */
public final class ShareActivity extends Activity {
    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        Intent intent = getIntent();
        boolean opened = Intent.ACTION_VIEW.equals(intent.getAction());
        String url = opened ? SharedText.url(intent.getDataString()) : shared(intent);
        if (url == null) {
            Toast.makeText(this, R.string.no_url, Toast.LENGTH_LONG).show();
            finish();
        } else if (opened) {
            ask(url);
        } else {
            download(url);
            finish();
        }
    }

    private static String shared(Intent intent) {
        String url = SharedText.url(intent.getCharSequenceExtra(Intent.EXTRA_TEXT));
        return url != null ? url : SharedText.url(intent.getCharSequenceExtra(Intent.EXTRA_SUBJECT));
    }

    private void download(String url) {
        App.downloads(this).add(url);
        Toast.makeText(this, R.string.download_begins, Toast.LENGTH_SHORT).show();
    }

    private void ask(final String url) {
        new AlertDialog.Builder(this)
                .setTitle(R.string.ask_title)
                .setMessage(getString(R.string.ask, FileName.of(url), Uri.parse(url).getHost()))
                .setPositiveButton(
                        R.string.add,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                download(url);
                            }
                        })
                .setNegativeButton(android.R.string.cancel, null)
                .setOnDismissListener(
                        new DialogInterface.OnDismissListener() {
                            @Override
                            public void onDismiss(DialogInterface dialog) {
                                finish();
                            }
                        })
                .show();
    }
}
