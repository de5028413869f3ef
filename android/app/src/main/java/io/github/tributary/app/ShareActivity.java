package io.github.tributary.app;

import android.app.Activity;
import android.content.Intent;
import android.os.Bundle;
import android.widget.Toast;
import io.github.tributary.R;
import io.github.tributary.core.SharedText;

/** Takes a link that another app shares or opens, and has it downloaded. It has no screen of its own. */
public final class ShareActivity extends Activity {
    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        String url = url(getIntent());
        if (url == null) {
            Toast.makeText(this, R.string.no_url, Toast.LENGTH_LONG).show();
        } else {
            DownloadService.add(this, url);
            Toast.makeText(this, R.string.download_begins, Toast.LENGTH_SHORT).show();
        }
        finish();
    }

    private static String url(Intent intent) {
        if (Intent.ACTION_VIEW.equals(intent.getAction())) {
            return SharedText.url(intent.getDataString());
        }
        CharSequence text = intent.getCharSequenceExtra(Intent.EXTRA_TEXT);
        String url = SharedText.url(text);
        return url != null ? url : SharedText.url(intent.getCharSequenceExtra(Intent.EXTRA_SUBJECT));
    }
}
