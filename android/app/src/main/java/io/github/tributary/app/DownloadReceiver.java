package io.github.tributary.app;

import android.app.NotificationManager;
import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;

/** Does what the buttons of notifications say, including those left by an earlier process. */
public final class DownloadReceiver extends BroadcastReceiver {
    static final String PAUSE = "io.github.tributary.PAUSE";
    static final String RESUME = "io.github.tributary.RESUME";
    static final String ID = "id";

    @Override
    public void onReceive(Context context, Intent intent) {
        receive(context, App.downloads(context), intent);
    }

    static void receive(Context context, Downloads downloads, Intent intent) {
        int id = intent.getIntExtra(ID, 0);
        Downloads.Entry e = downloads.get(id);
        if (e == null) { // removed from the list
            ((NotificationManager) context.getSystemService(Context.NOTIFICATION_SERVICE)).cancel(id);
        } else if (PAUSE.equals(intent.getAction())) {
            downloads.pause(e);
            downloads.show(e); // an earlier process may have left it shown as running
        } else if (RESUME.equals(intent.getAction())) {
            downloads.resume(e);
        }
    }
}
