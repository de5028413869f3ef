package io.github.tributary.app;

import android.app.Activity;
import android.content.ActivityNotFoundException;
import android.content.Intent;
import android.net.VpnService;
import android.os.Build;
import android.view.View;
import android.widget.RadioButton;
import android.widget.RadioGroup;
import io.github.tributary.R;
import io.github.tributary.core.Reach;

/** The part of the screen about how other apps find the proxy. */
final class ReachChoice {
    private static final int VPN_REQUEST = 1;

    private final Activity screen;
    private final Settings settings;
    private boolean showing; // shows the state, which is not a choice

    ReachChoice(Activity screen, Settings settings) {
        this.screen = screen;
        this.settings = settings;
    }

    void bind() {
        screen.findViewById(R.id.reach_vpn).setVisibility(Build.VERSION.SDK_INT >= 29 ? View.VISIBLE : View.GONE);
        show();
        ((RadioGroup) screen.findViewById(R.id.reach))
                .setOnCheckedChangeListener(
                        new RadioGroup.OnCheckedChangeListener() {
                            @Override
                            public void onCheckedChanged(RadioGroup group, int id) {
                                if (!showing) {
                                    choose(id);
                                }
                            }
                        });
    }

    private void choose(int id) {
        if (id == R.id.reach_vpn) {
            Intent question = VpnService.prepare(screen);
            if (question != null) { // the system asks the user, once
                try {
                    screen.startActivityForResult(question, VPN_REQUEST);
                } catch (ActivityNotFoundException e) { // the phone has no VPNs
                    show();
                }
                return;
            }
            settings.setReach(Reach.VPN);
        } else {
            settings.setReach(id == R.id.reach_setting ? Reach.SETTING : Reach.BY_HAND);
        }
        show();
    }

    /** Called when the user has answered the system's question. */
    void answered(int request, int result) {
        if (request != VPN_REQUEST) {
            return;
        }
        if (result == Activity.RESULT_OK) {
            settings.setReach(Reach.VPN);
        }
        show();
    }

    /** Shows the current state: the permission can appear, and a VPN can end, without this screen. */
    void show() {
        Reach reach = settings.reach();
        boolean permitted = ProxySetting.permitted(screen);
        RadioButton setting = (RadioButton) screen.findViewById(R.id.reach_setting);
        setting.setEnabled(permitted || reach == Reach.SETTING);
        int id = R.id.reach_by_hand;
        int how = R.string.reach_by_hand_how;
        if (reach == Reach.SETTING) {
            id = R.id.reach_setting;
            how = R.string.reach_setting_how;
        } else if (reach == Reach.VPN) {
            id = R.id.reach_vpn;
            how = R.string.reach_vpn_how;
        }
        showing = true;
        RadioGroup group = (RadioGroup) screen.findViewById(R.id.reach);
        if (group.getCheckedRadioButtonId() != id) {
            group.check(id);
        }
        showing = false;
        screen.findViewById(R.id.around).setVisibility(reach == Reach.VPN ? View.VISIBLE : View.GONE);
        MainActivity.set(screen, R.id.reach_how, screen.getString(how, ProxyService.LISTEN));
        View missing = screen.findViewById(R.id.reach_permission);
        missing.setVisibility(permitted ? View.GONE : View.VISIBLE);
        MainActivity.set(screen, R.id.reach_permission, screen.getString(R.string.reach_permission, screen.getPackageName()));
    }
}
