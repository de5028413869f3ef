package io.github.tributary.app;

import android.app.AlertDialog;
import android.content.ActivityNotFoundException;
import android.content.DialogInterface;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.Button;
import android.widget.CheckBox;
import android.widget.EditText;
import android.widget.LinearLayout;
import android.widget.ProgressBar;
import android.widget.TextView;
import android.widget.Toast;
import io.github.tributary.R;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.Invitation;
import io.github.tributary.core.SharedText;
import io.github.tributary.core.Source;
import java.util.List;

/** The part of the screen with the downloads, and the input line that starts one. */
final class DownloadList implements Downloads.Listener {
    private static final float LARGE_FONT = 1.5f;

    private final MainActivity screen;
    private final Downloads downloads;

    DownloadList(MainActivity screen) {
        this(screen, App.downloads(screen));
    }

    DownloadList(MainActivity screen, Downloads downloads) {
        this.screen = screen;
        this.downloads = downloads;
    }

    void bind() {
        LinearLayout line = (LinearLayout) screen.findViewById(R.id.line);
        if (stack(line)) {
            screen.findViewById(R.id.url).getLayoutParams().width = ViewGroup.LayoutParams.MATCH_PARENT;
        }
        screen.findViewById(R.id.add)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                add();
                            }
                        });
    }

    /** Called when the screen becomes visible. */
    void resume() {
        downloads.listen(this);
        ((LinearLayout) screen.findViewById(R.id.downloads)).removeAllViews();
        for (Downloads.Entry e : downloads.all()) {
            changed(e);
        }
    }

    void pause() {
        downloads.forget(this);
    }

    private void add() {
        EditText line = (EditText) screen.findViewById(R.id.url);
        if (Invitation.in(line.getText()) != null) {
            screen.startActivity(PairActivity.asking(screen, line.getText().toString()));
            line.setText("");
        } else if (sources(line).isEmpty()) {
            line.setError(screen.getString(R.string.no_url));
        } else if (!StoragePermission.ask(screen)) {
            begin();
        }
    }

    /** Returns the link in the input line, or the list of links. */
    private static List<Source> sources(EditText line) {
        String text = line.getText().toString().trim();
        boolean bare = !text.contains("://") && text.matches("\\S+\\.\\S+(\\s+\\S*\\p{XDigit}{64}\\S*)?"); // as people write them
        return SharedText.sources(bare ? "https://" + text : text);
    }

    /** Downloads what is in the input line, if it contains links. */
    void begin() {
        EditText line = (EditText) screen.findViewById(R.id.url);
        List<Source> sources = sources(line);
        if (sources.isEmpty()) {
            return;
        }
        line.setText("");
        screen.askForNotifications();
        for (Source s : sources) {
            downloads.add(s, false);
        }
        screen.askAboutMobileData();
    }

    @Override
    public void changed(Downloads.Entry e) {
        LinearLayout list = (LinearLayout) screen.findViewById(R.id.downloads);
        View row = list.findViewWithTag(e.id);
        if (e.removed()) {
            if (row != null) {
                list.removeView(row);
            }
            return;
        }
        if (row == null) {
            row = row(list, e);
            list.addView(row, 0); // the latest first
        }
        fill(row, e);
    }

    private View row(ViewGroup list, final Downloads.Entry e) {
        View row = LayoutInflater.from(screen).inflate(R.layout.download, list, false);
        row.setTag(e.id);
        stack((LinearLayout) row.findViewById(R.id.buttons));
        row.findViewById(R.id.step)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                step(e);
                            }
                        });
        ((CheckBox) row.findViewById(R.id.unmetered))
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                downloads.unmetered(e, ((CheckBox) v).isChecked());
                            }
                        });
        row.findViewById(R.id.remove)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                remove(e);
                            }
                        });
        return row;
    }

    /** Puts what is side by side one below the other if the font is large. */
    private boolean stack(LinearLayout line) {
        boolean large = screen.getResources().getConfiguration().fontScale >= LARGE_FONT;
        line.setOrientation(large ? LinearLayout.VERTICAL : LinearLayout.HORIZONTAL);
        return large;
    }

    /** Shows the rates of downloads, since a stalled one reports nothing, and what the settings allow now. */
    void refresh() {
        for (Downloads.Entry e : downloads.all()) {
            if (e.state().phase != DownloadState.Phase.DONE) {
                changed(e);
            }
        }
    }

    /** Removes a download from the list, after a question if bytes would be lost. */
    void remove(final Downloads.Entry e) {
        DownloadState s = e.state();
        if (s.phase == DownloadState.Phase.DONE || s.bytes == 0) {
            downloads.remove(e);
        } else {
            ask(e);
        }
    }

    /** Asks whether a download is to be deleted. */
    void ask(final Downloads.Entry e) {
        DownloadState s = e.state();
        new AlertDialog.Builder(screen)
                .setTitle(R.string.delete_title)
                .setMessage(screen.getString(R.string.delete_question, Texts.isolated(screen, s.name), Texts.size(screen, s.bytes)))
                .setPositiveButton(
                        R.string.delete,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                if (e.state().phase != DownloadState.Phase.DONE) { // done meanwhile: nothing is deleted
                                    downloads.remove(e);
                                }
                            }
                        })
                .setNegativeButton(R.string.keep, null)
                .show();
    }

    /** Does what the first button says. */
    private void step(Downloads.Entry e) {
        DownloadState s = e.state();
        if (pausable(s)) {
            downloads.pause(e);
        } else if (s.phase != DownloadState.Phase.DONE) {
            downloads.resume(e);
        } else {
            try {
                screen.startActivity(DownloadNotifications.view(screen, e));
            } catch (ActivityNotFoundException | SecurityException none) { // no app for it, or the file is gone
                Toast.makeText(screen, R.string.no_app, Toast.LENGTH_LONG).show();
            }
        }
    }

    private static boolean pausable(DownloadState s) {
        return s.active() || s.phase == DownloadState.Phase.QUEUED;
    }

    private void fill(View row, Downloads.Entry e) {
        DownloadState s = e.state();
        boolean done = s.phase == DownloadState.Phase.DONE;
        ((TextView) row.findViewById(R.id.name)).setText(Texts.isolated(screen, s.name));
        ((TextView) row.findViewById(R.id.progress_text)).setText(Texts.download(screen, e));
        TextView shares = (TextView) row.findViewById(R.id.shares);
        shares.setText(Texts.shares(screen, s.brought));
        shares.setVisibility(shares.length() == 0 ? View.GONE : View.VISIBLE);
        CheckBox free = (CheckBox) row.findViewById(R.id.unmetered);
        free.setChecked(s.unmetered);
        boolean matters = s.unmetered || new Settings(screen).policy().mobileAllowed();
        free.setVisibility(done || !matters ? View.GONE : View.VISIBLE);
        free.setContentDescription(screen.getString(R.string.of_download, free.getText(), Texts.isolated(screen, s.name)));
        ProgressBar bar = (ProgressBar) row.findViewById(R.id.progress);
        bar.setVisibility(done ? View.GONE : View.VISIBLE);
        bar.setIndeterminate(s.active() && s.total() <= 0);
        bar.setProgress(Texts.permille(s));
        Button step = (Button) row.findViewById(R.id.step);
        step.setText(pausable(s) ? R.string.pause : done ? R.string.open : R.string.resume);
        step.setContentDescription(screen.getString(R.string.of_download, step.getText(), Texts.isolated(screen, s.name)));
        Button remove = (Button) row.findViewById(R.id.remove);
        remove.setText(done ? R.string.forget : R.string.delete);
        remove.setContentDescription(screen.getString(R.string.of_download, remove.getText(), Texts.isolated(screen, s.name)));
    }
}
