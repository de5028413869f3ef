package io.github.tributary.app;

import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.app.PendingIntent;
import android.content.Context;
import android.content.Intent;
import android.os.Handler;
import android.os.Looper;
import android.os.SystemClock;
import android.service.notification.StatusBarNotification;
import io.github.tributary.R;
import io.github.tributary.core.DownloadState;
import java.util.HashMap;
import java.util.Map;

/**
 * A notification for each download that is not queued, to pause it, resume it, or give it up. Only the one for its end
 * makes a sound. For the main thread.
 */
final class DownloadNotifications implements Downloads.Listener {
    static final String CHANNEL = "downloads"; // silent: it changes each second
    static final String ENDED = "ended";
    private static final long BETWEEN_MILLIS = 1_000; // the system drops updates beyond 5 a second
    private static final long AGAIN_MILLIS = 1_500;

    /** What was last shown of a download. */
    private static final class Shown {
        long at;
        DownloadState.Phase phase;
        boolean running;
    }

    private final Context context;
    private final NotificationManager manager;
    private final Handler main = new Handler(Looper.getMainLooper());
    private final Map<Integer, Shown> shown = new HashMap<Integer, Shown>();

    DownloadNotifications(Context context) {
        this.context = context;
        manager = (NotificationManager) context.getSystemService(Context.NOTIFICATION_SERVICE);
        manager.createNotificationChannel(
                new NotificationChannel(CHANNEL, context.getString(R.string.downloads), NotificationManager.IMPORTANCE_LOW));
        manager.createNotificationChannel(
                new NotificationChannel(ENDED, context.getString(R.string.ended_downloads), NotificationManager.IMPORTANCE_DEFAULT));
    }

    /**
     * Corrects what an earlier process left behind: it may have been killed, and its notifications stay as they were.
     */
    void mend(Downloads downloads) {
        for (StatusBarNotification n : manager.getActiveNotifications()) {
            Downloads.Entry e = downloads.get(n.getId());
            if (e != null) {
                changed(e);
            } else if (n.getId() > Downloads.FIRST_ID) {
                manager.cancel(n.getId());
            }
        }
    }

    @Override
    public void changed(final Downloads.Entry e) {
        if (e.removed() || e.state().phase == DownloadState.Phase.QUEUED) {
            shown.remove(e.id);
            manager.cancel(e.id);
            return;
        }
        Shown last = shown.get(e.id);
        if (last == null) {
            last = new Shown();
            shown.put(e.id, last);
        }
        final DownloadState s = e.state();
        long now = SystemClock.elapsedRealtime();
        int running = 0;
        for (Shown other : shown.values()) {
            running += other.running ? 1 : 0;
        }
        long between = BETWEEN_MILLIS * Math.max(1, running / 2);
        if (s.phase == last.phase && now - last.at < between) {
            return;
        }
        last.at = now;
        boolean step = s.phase != last.phase;
        boolean ends = step && last.phase != null && ended(s); // here, not in an earlier process
        if (ended(s) && !step && !isShown(e.id)) {
            return; // the user took it away
        }
        last.phase = s.phase;
        last.running = s.active();
        if (ends) {
            manager.cancel(e.id); // updates of an existing notification are silent
        }
        manager.notify(e.id, notification(e));
        if (step && !s.active()) { // no later one would make up for a dropped one
            main.postDelayed(
                    new Runnable() {
                        @Override
                        public void run() {
                            if (e.state() == s && !e.removed()) {
                                manager.notify(e.id, notification(e));
                            }
                        }
                    },
                    AGAIN_MILLIS);
        }
    }

    private static boolean ended(DownloadState s) {
        return s.phase == DownloadState.Phase.DONE || s.phase == DownloadState.Phase.FAILED;
    }

    private boolean isShown(int id) {
        for (StatusBarNotification n : manager.getActiveNotifications()) {
            if (n.getId() == id) {
                return true;
            }
        }
        return false;
    }

    private Notification notification(Downloads.Entry e) {
        DownloadState s = e.state();
        PendingIntent open =
                PendingIntent.getActivity(
                        context, e.id, view(context, e), PendingIntent.FLAG_IMMUTABLE | PendingIntent.FLAG_UPDATE_CURRENT);
        Notification.Builder b =
                new Notification.Builder(context, ended(s) ? ENDED : CHANNEL)
                        .setSmallIcon(R.drawable.icon)
                        .setContentTitle(Texts.isolated(context, s.name))
                        .setContentText(Texts.download(context, e))
                        .setContentIntent(open)
                        .setOnlyAlertOnce(true)
                        .setAutoCancel(s.phase == DownloadState.Phase.DONE)
                        .setOngoing(s.active());
        if (s.active()) {
            b.setProgress(1000, Texts.permille(s), s.total() <= 0);
            b.addAction(action(e, DownloadReceiver.PAUSE, R.string.pause));
        } else if (s.phase != DownloadState.Phase.DONE) {
            b.addAction(action(e, DownloadReceiver.RESUME, R.string.resume));
        }
        if (s.phase != DownloadState.Phase.DONE) {
            b.addAction(new Notification.Action.Builder(null, context.getString(R.string.delete), MainActivity.removing(context, e.id)).build());
        }
        return b.build();
    }

    private Notification.Action action(Downloads.Entry e, String what, int label) {
        Intent intent = new Intent(context, DownloadReceiver.class).setAction(what).putExtra(DownloadReceiver.ID, e.id);
        PendingIntent p =
                PendingIntent.getBroadcast(
                        context, e.id, intent, PendingIntent.FLAG_IMMUTABLE | PendingIntent.FLAG_UPDATE_CURRENT);
        return new Notification.Action.Builder(null, context.getString(label), p).build();
    }

    /** Opens the file of a finished download, or else the screen. */
    static Intent view(Context context, Downloads.Entry e) {
        Intent file = Store.view(e.state());
        return file != null ? file : new Intent(context, MainActivity.class);
    }
}
