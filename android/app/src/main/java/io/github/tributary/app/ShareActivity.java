package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.ClipData;
import android.content.ClipDescription;
import android.content.ClipboardManager;
import android.content.DialogInterface;
import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import android.os.PersistableBundle;
import android.view.View;
import android.widget.CheckBox;
import android.widget.FrameLayout;
import android.widget.Toast;
import io.github.tributary.R;
import io.github.tributary.core.FileName;
import io.github.tributary.core.Invitation;
import io.github.tributary.core.LocalAddress;
import io.github.tributary.core.SharedText;
import io.github.tributary.core.Source;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Takes a link that another app shares or opens, and downloads it if the user wants that. Any app can start this with
 * any link, so it always asks: a download can cost money, and a request can carry data to a server.
 */
public final class ShareActivity extends Activity {
    private CheckBox free; // restricts the download to networks that cost nothing
    private boolean asking; // about mobile data
    private List<Source> waiting; // to download once the user has said where to; null = nothing

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
        List<Source> sources = sources(getIntent());
        if (sources.isEmpty()) {
            Toast.makeText(this, R.string.no_url, Toast.LENGTH_LONG).show();
            finish();
        } else {
            ask(sources);
        }
    }

    /** Returns the links in what is opened, or else in what is shared, without those that name no server. */
    private static List<Source> sources(Intent intent) {
        CharSequence[] places = {
            intent.getDataString(), intent.getCharSequenceExtra(Intent.EXTRA_TEXT), intent.getCharSequenceExtra(Intent.EXTRA_SUBJECT)
        };
        for (CharSequence place : places) {
            List<Source> sources = new ArrayList<Source>();
            for (Source s : SharedText.sources(place)) {
                String host = Uri.parse(s.url).getHost();
                if (host != null && !host.isEmpty()) {
                    sources.add(s);
                }
            }
            if (!sources.isEmpty()) {
                return sources.size() == 1 ? Collections.singletonList(Handover.source(sources.get(0), intent)) : sources;
            }
        }
        return Collections.emptyList();
    }

    private void download(List<Source> sources) {
        for (Source s : sources) {
            App.downloads(this).add(s, free.isChecked());
        }
        Toast.makeText(this, R.string.download_begins, Toast.LENGTH_SHORT).show();
        askAboutMobileData();
    }

    /** Asks about mobile data, which could be used from now on. */
    private void askAboutMobileData() {
        MobileConsent consent =
                new MobileConsent(
                        this,
                        new Settings(this),
                        new Runnable() {
                            @Override
                            public void run() {
                                finish();
                            }
                        });
        asking = consent.first();
    }

    @Override
    public void onRequestPermissionsResult(int request, String[] permissions, int[] results) {
        super.onRequestPermissionsResult(request, permissions, results);
        if (request == StoragePermission.REQUEST && waiting != null) { // null = recreated: it asks again
            download(waiting);
            if (!asking) {
                finish();
            }
        }
    }

    /** Gives the user an address for a player, which works while the proxy runs. */
    private void copy(String local) {
        ClipData clip = ClipData.newPlainText(getString(R.string.local_address), local);
        PersistableBundle extras = new PersistableBundle();
        extras.putBoolean(ClipDescription.EXTRA_IS_SENSITIVE, true); // Android 13 does not show it; keyboards of older ones know it, too
        clip.getDescription().setExtras(extras);
        ((ClipboardManager) getSystemService(CLIPBOARD_SERVICE)).setPrimaryClip(clip);
        new Settings(this).setAddressGiven();
        ProxyService.start(this);
        Toast.makeText(this, R.string.local_address_copied, Toast.LENGTH_LONG).show();
        askAboutMobileData();
    }

    /** Returns the question: what is downloaded from where, and what it may cost. */
    private String question(List<Source> sources) {
        Settings settings = new Settings(this);
        String cost = MobileConsent.due(this, settings) ? getString(R.string.cost_asked) : Texts.cost(this, settings.policy());
        StringBuilder files = new StringBuilder();
        for (Source s : sources) {
            String host = Texts.isolated(this, Uri.parse(s.url).getHost());
            String name = Texts.isolated(this, FileName.of(s.url));
            if (sources.size() == 1) {
                return getString(R.string.ask, name, host, s.checksum.isEmpty() ? cost : getString(R.string.ask_checksum, cost));
            }
            files.append(getString(R.string.of_download, host, name)).append('\n');
        }
        return files.append('\n').append(cost).toString();
    }

    private void ask(final List<Source> sources) {
        int n = sources.size();
        String title = n == 1 ? getString(R.string.ask_title) : getResources().getQuantityString(R.plurals.ask_titles, n, n);
        AlertDialog.Builder builder = new AlertDialog.Builder(this);
        final String local = LocalAddress.of(ProxyService.GATEWAY, new Settings(this).gatewayToken(), sources.get(0).url);
        if (local != null && n == 1) {
            builder.setNeutralButton(
                    R.string.local_address,
                    new DialogInterface.OnClickListener() {
                        @Override
                        public void onClick(DialogInterface dialog, int which) {
                            copy(local);
                        }
                    });
        }
        free = new CheckBox(this);
        free.setText(R.string.unmetered);
        free.setVisibility(new Settings(this).policy().mobileAllowed() ? View.VISIBLE : View.GONE); // no consent, no costs
        free.setMinHeight(getResources().getDimensionPixelSize(R.dimen.touch));
        free.setFilterTouchesWhenObscured(true);
        int side = getResources().getDimensionPixelSize(R.dimen.dialog_side);
        FrameLayout box = new FrameLayout(this);
        box.setPadding(side, 0, side, 0);
        box.addView(free);
        builder.setView(box);
        AlertDialog question =
                builder
                        .setTitle(title)
                        .setMessage(question(sources))
                        .setPositiveButton(
                                R.string.add,
                                new DialogInterface.OnClickListener() {
                                    @Override
                                    public void onClick(DialogInterface dialog, int which) {
                                        if (StoragePermission.ask(ShareActivity.this)) {
                                            waiting = sources;
                                        } else {
                                            download(sources);
                                        }
                                    }
                                })
                        .setNegativeButton(android.R.string.cancel, null)
                        .setOnDismissListener(
                                new DialogInterface.OnDismissListener() {
                                    @Override
                                    public void onDismiss(DialogInterface dialog) {
                                        if (waiting == null && !asking) {
                                            finish();
                                        }
                                    }
                                })
                        .show();
        // A window that another app draws over the question must not capture the user's tap.
        question.getButton(DialogInterface.BUTTON_POSITIVE).setFilterTouchesWhenObscured(true);
        question.getButton(DialogInterface.BUTTON_NEUTRAL).setFilterTouchesWhenObscured(true);
    }
}
