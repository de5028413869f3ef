package io.github.tributary.app;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import android.view.View;
import io.github.tributary.R;

/** The button that revokes all local addresses handed out: it makes a new secret. */
final class AddressChoice {
    private final Activity screen;
    private final Settings settings;

    AddressChoice(Activity screen, Settings settings) {
        this.screen = screen;
        this.settings = settings;
    }

    void bind() {
        screen.findViewById(R.id.new_address)
                .setOnClickListener(
                        new View.OnClickListener() {
                            @Override
                            public void onClick(View v) {
                                ask();
                            }
                        });
        show();
    }

    /** Shows the button if an address was handed out. */
    void show() {
        screen.findViewById(R.id.new_address).setVisibility(settings.addressGiven() ? View.VISIBLE : View.GONE);
    }

    private void ask() {
        new AlertDialog.Builder(screen)
                .setTitle(R.string.new_address_title)
                .setMessage(R.string.new_address_question)
                .setPositiveButton(
                        R.string.new_address,
                        new DialogInterface.OnClickListener() {
                            @Override
                            public void onClick(DialogInterface dialog, int which) {
                                settings.renewGatewayToken();
                                show();
                            }
                        })
                .setNegativeButton(android.R.string.cancel, null)
                .show();
    }
}
