package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.Context;
import android.content.DialogInterface;
import android.content.Intent;
import android.os.Bundle;
import android.widget.Toast;
import io.github.tributary.R;
import io.github.tributary.core.Invitation;

/**
 * Takes a relay's link that the camera, another app or a web page opens, and pairs if the user wants that. Anybody can
 * open it with any link, so it always asks: the connections of other apps will go to that server.
 */
public final class PairActivity extends Activity {
    /** Opens a question about a link, or a message that it is not valid. */
    static Intent asking(Context context, CharSequence link) {
        return new Intent(context, PairActivity.class).putExtra(Intent.EXTRA_TEXT, link);
    }

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        String opened = getIntent().getDataString();
        Invitation i = Invitation.in(opened == null ? getIntent().getCharSequenceExtra(Intent.EXTRA_TEXT) : opened);
        if (i == null) {
            Toast.makeText(this, R.string.pair_no_link, Toast.LENGTH_LONG).show();
            finish();
        } else {
            ask(i);
        }
    }

    private void ask(final Invitation i) {
        Settings settings = new Settings(this);
        String old = settings.relay();
        String key = settings.relayKey(i.address);
        boolean known = !key.isEmpty() || old.equalsIgnoreCase(i.address);
        boolean replaces = known && !key.equals(i.key);
        String question = getString(R.string.pair_question, i.host);
        if (replaces) {
            question = getString(R.string.pair_other_key, i.address) + "\n\n" + question;
        } else if (!old.isEmpty() && !old.equalsIgnoreCase(i.address)) {
            question += "\n\n" + getString(R.string.pair_second, old);
        }
        AlertDialog dialog =
                new AlertDialog.Builder(this)
                        .setTitle(replaces ? R.string.pair_other_key_title : R.string.pair_title)
                        .setMessage(question)
                        .setPositiveButton(
                                replaces ? R.string.pair_replace : R.string.pair_agree,
                                new DialogInterface.OnClickListener() {
                                    @Override
                                    public void onClick(DialogInterface dialog, int which) {
                                        App.relays(PairActivity.this).pair(i);
                                        startActivity( // in its own task, which shows the progress; this one is gone
                                                new Intent(PairActivity.this, MainActivity.class).addFlags(Intent.FLAG_ACTIVITY_NEW_TASK));
                                    }
                                })
                        .setNegativeButton(android.R.string.cancel, null)
                        .setOnDismissListener(
                                new DialogInterface.OnDismissListener() {
                                    @Override
                                    public void onDismiss(DialogInterface dialog) {
                                        setIntent(new Intent()); // the secret is not kept
                                        finish();
                                    }
                                })
                        .show();
        // A window that another app draws over the question must not capture the user's tap.
        dialog.getButton(DialogInterface.BUTTON_POSITIVE).setFilterTouchesWhenObscured(true);
    }
}
