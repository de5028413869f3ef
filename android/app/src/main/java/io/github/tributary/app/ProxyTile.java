package io.github.tributary.app;

import android.service.quicksettings.Tile;
import android.service.quicksettings.TileService;

/** Starts and stops the proxy from the quick settings. */
public final class ProxyTile extends TileService {
    @Override
    public void onStartListening() {
        show();
    }

    @Override
    public void onClick() {
        if (new Settings(this).run()) {
            ProxyService.stop(this);
        } else {
            ProxyService.start(this);
        }
        show();
    }

    private void show() {
        Tile tile = getQsTile();
        if (tile != null) {
            tile.setState(new Settings(this).run() ? Tile.STATE_ACTIVE : Tile.STATE_INACTIVE);
            tile.updateTile();
        }
    }
}
