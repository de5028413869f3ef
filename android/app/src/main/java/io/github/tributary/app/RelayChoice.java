package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import android.text.InputType;
import android.view.View;
import android.widget.Button;
import android.widget.EditText;
import io.github.tributary.R;
import io.github.tributary.core.Invitation;
import io.github.tributary.core.Status;

/** The part of the screen about the relay: its state, and a button to add or remove one. */
final class RelayChoice {
    private final Activity screen;
    private final Settings settings;

    RelayChoice(Activity screen, Settings settings) {
        this.screen = screen;
        this.settings = settings;
    }

    void bind() {
        screen.findViewById(R.id.relay_change)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                if (settings.relay().isEmpty()) {
                                    add();
                                } else {
                                    remove();
                                }
                            }
                        });
        screen.findViewById(R.id.relay_apps)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                AppsChoice.ask(screen);
                            }
                        });
        show();
    }

    /** Shows the current state. */
    void show() {
        Status status = ProxyService.status();
        boolean busy = App.relays(screen).busy();
        String text = Texts.relay(screen, settings.relay(), status, busy, App.relays(screen).end());
        boolean idle = !busy && !settings.relay().isEmpty() && AppsChoice.access(screen, settings).nobody();
        MainActivity.set(screen, R.id.relay, idle ? text + "\n" + screen.getString(R.string.relay_idle) : text);
        screen.findViewById(R.id.relay_apps).setVisibility(idle ? View.VISIBLE : View.GONE);
        Button change = (Button) screen.findViewById(R.id.relay_change);
        change.setText(settings.relay().isEmpty() ? R.string.relay_add : R.string.relay_remove);
        change.setEnabled(!busy);
    }

    private void add() {
        final EditText link = new EditText(screen);
        link.setId(R.id.relay_link);
        link.setHint(R.string.relay_link);
        link.setInputType(InputType.TYPE_CLASS_TEXT | InputType.TYPE_TEXT_VARIATION_URI | InputType.TYPE_TEXT_FLAG_NO_SUGGESTIONS);
        link.setImportantForAutofill(View.IMPORTANT_FOR_AUTOFILL_NO);
        link.setSaveEnabled(false); // it is a secret
        final AlertDialog dialog =
                new AlertDialog.Builder(screen)
                        .setTitle(R.string.relay_add)
                        .setView(link)
                        .setPositiveButton(android.R.string.ok, null)
                        .setNegativeButton(android.R.string.cancel, null)
                        .show();
        dialog.getButton(DialogInterface.BUTTON_POSITIVE)
                .setOnClickListener( // without closing the dialog
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                if (Invitation.in(link.getText()) == null) {
                                    link.setError(screen.getString(R.string.pair_no_link));
                                    return;
                                }
                                dialog.dismiss();
                                screen.startActivity(PairActivity.asking(screen, link.getText()));
                            }
                        });
    }

    private void remove() {
        final String address = settings.relay();
        new AlertDialog.Builder(screen)
                .setTitle(R.string.relay_remove_title)
                .setMessage(screen.getString(R.string.relay_remove_question, address))
                .setPositiveButton(
                        R.string.relay_remove,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                App.relays(screen).remove(address);
                                show();
                            }
                        })
                .setNegativeButton(R.string.keep, null)
                .show();
    }
}
