package io.github.tributary.app;

import android.annotation.TargetApi;
import android.app.PendingIntent;
import android.content.Intent;
import android.os.Build;
import android.service.quicksettings.Tile;
import android.service.quicksettings.TileService;

/** Starts and stops the proxy from the quick settings. */
public final class ProxyTile extends TileService {
    @Override
    public void onStartListening() {
        show(ProxyService.runs());
    }

    @Override
    public void onClick() {
        boolean run = !ProxyService.runs();
        if (!run) {
            ProxyService.stop(this);
        } else if (!ProxyService.start(this)) { // Android 14 does not allow tiles to do this: the screen may
            run = false;
            open(MainActivity.starting(this).addFlags(Intent.FLAG_ACTIVITY_NEW_TASK));
        }
        show(run);
    }

    @SuppressWarnings("deprecation") // the only way before Android 14
    private void open(Intent screen) {
        if (Build.VERSION.SDK_INT >= 34) {
            collapse(screen);
        } else {
            startActivityAndCollapse(screen);
        }
    }

    @TargetApi(34)
    private void collapse(Intent screen) {
        startActivityAndCollapse(PendingIntent.getActivity(this, 1, screen, PendingIntent.FLAG_IMMUTABLE));
    }

    private void show(boolean run) {
        Tile tile = getQsTile();
        if (tile != null) {
            tile.setState(run ? Tile.STATE_ACTIVE : Tile.STATE_INACTIVE);
            tile.updateTile();
        }
    }
}
