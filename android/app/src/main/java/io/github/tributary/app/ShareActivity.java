package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.ClipData;
import android.content.ClipboardManager;
import android.content.DialogInterface;
import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import android.widget.Toast;
import io.github.tributary.R;
import io.github.tributary.core.FileName;
import io.github.tributary.core.Invitation;
import io.github.tributary.core.LocalAddress;
import io.github.tributary.core.SharedText;

/**
 * Takes a link that another app shares or opens, and downloads it if the user wants that. Any app can start this with any
 * link, so it always asks: a download can cost money, and a request can carry data to a server.
 */
public final class ShareActivity extends Activity {
    private String waiting; // what is downloaded when the user has said where to; null = nothing

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        CharSequence text = getIntent().getCharSequenceExtra(Intent.EXTRA_TEXT);
        Invitation relay = Invitation.in(text);
        if (relay != null) {
            startActivity(PairActivity.asking(this, text));
            finish();
            return;
        }
        String url = url(getIntent());
        String host = url == null ? null : Uri.parse(url).getHost();
        if (host == null || host.isEmpty()) {
            Toast.makeText(this, R.string.no_url, Toast.LENGTH_LONG).show();
            finish();
        } else {
            ask(url, host);
        }
    }

    /** The link in what is opened, or else in what is shared; null if there is none. */
    private static String url(Intent intent) {
        CharSequence[] places = {
            intent.getDataString(), intent.getCharSequenceExtra(Intent.EXTRA_TEXT), intent.getCharSequenceExtra(Intent.EXTRA_SUBJECT)
        };
        for (CharSequence place : places) {
            String url = SharedText.url(place);
            if (url != null) {
                return url;
            }
        }
        return null;
    }

    private void download(String url) {
        App.downloads(this).add(url);
        Toast.makeText(this, R.string.download_begins, Toast.LENGTH_SHORT).show();
    }

    @Override
    public void onRequestPermissionsResult(int request, String[] permissions, int[] results) {
        super.onRequestPermissionsResult(request, permissions, results);
        if (request == StoragePermission.REQUEST && waiting != null) { // or the screen was made anew, and asks again
            download(waiting);
            finish();
        }
    }

    /** Gives the user an address for a player, which works while the proxy runs. */
    private void copy(String local) {
        ClipData clip = ClipData.newPlainText(getString(R.string.local_address), local);
        ((ClipboardManager) getSystemService(CLIPBOARD_SERVICE)).setPrimaryClip(clip);
        ProxyService.start(this);
        Toast.makeText(this, R.string.local_address_copied, Toast.LENGTH_LONG).show();
    }

    private void ask(final String url, String host) {
        AlertDialog.Builder builder = new AlertDialog.Builder(this);
        final String local = LocalAddress.of(ProxyService.GATEWAY, new Settings(this).gatewayToken(), url);
        if (local != null) {
            builder.setNeutralButton(
                    R.string.local_address,
                    new DialogInterface.OnClickListener() {
                        @Override
                        public void onClick(DialogInterface dialog, int which) {
                            copy(local);
                        }
                    });
        }
        AlertDialog question =
                builder
                        .setTitle(R.string.ask_title)
                        .setMessage(getString(R.string.ask, FileName.of(url), host, Texts.cost(this, new Settings(this).policy())))
                        .setPositiveButton(
                                R.string.add,
                                new DialogInterface.OnClickListener() {
                                    @Override
                                    public void onClick(DialogInterface dialog, int which) {
                                        if (StoragePermission.ask(ShareActivity.this)) {
                                            waiting = url;
                                        } else {
                                            download(url);
                                        }
                                    }
                                })
                        .setNegativeButton(android.R.string.cancel, null)
                        .setOnDismissListener(
                                new DialogInterface.OnDismissListener() {
                                    @Override
                                    public void onDismiss(DialogInterface dialog) {
                                        if (waiting == null) {
                                            finish();
                                        }
                                    }
                                })
                        .show();
        // A window that another app lays over the question must not borrow the user's finger.
        question.getButton(DialogInterface.BUTTON_POSITIVE).setFilterTouchesWhenObscured(true);
        question.getButton(DialogInterface.BUTTON_NEUTRAL).setFilterTouchesWhenObscured(true);
    }
}
