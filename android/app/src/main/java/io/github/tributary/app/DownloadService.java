package io.github.tributary.app;

import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.app.PendingIntent;
import android.app.Service;
import android.content.Context;
import android.content.Intent;
import android.content.pm.ServiceInfo;
import android.net.Uri;
import android.os.Build;
import android.os.IBinder;
import io.github.tributary.R;
import io.github.tributary.core.DownloadState;
import java.util.ArrayList;
import java.util.List;

/** Keeps downloads running in the foreground, each with a notification to pause it, go on, and give it up. */
public class DownloadService extends Service {
    private static final String ADD = "io.github.tributary.ADD";
    private static final String PAUSE = "io.github.tributary.PAUSE";
    private static final String RESUME = "io.github.tributary.RESUME";
    private static final String CANCEL = "io.github.tributary.CANCEL";
    private static final String URL = "url";
    private static final String ID = "id";
    private static final String CHANNEL = "downloads";
    private static final int NOTIFICATION = 2; // of the service itself; those of downloads have their numbers

    private Downloads downloads;

    private final Downloads.Listener changes =
            new Downloads.Listener() {
                @Override
                public void changed(Downloads.Entry e) {
                    show(e);
                    endIfIdle();
                }
            };

    /** Downloads a file. */
    static void add(Context context, String url) {
        context.startForegroundService(intent(context, ADD).putExtra(URL, url));
    }

    /** Begins a download, or goes on with it. */
    static void resume(Context context, int id) {
        context.startForegroundService(intent(context, RESUME).putExtra(ID, id));
    }

    private static Intent intent(Context context, String action) {
        return new Intent(context, DownloadService.class).setAction(action);
    }

    @Override
    public void onCreate() {
        super.onCreate();
        NotificationManager manager = (NotificationManager) getSystemService(NOTIFICATION_SERVICE);
        manager.createNotificationChannel(
                new NotificationChannel(CHANNEL, getString(R.string.downloads), NotificationManager.IMPORTANCE_LOW));
        downloads = downloads();
        downloads.listen(changes);
    }

    /** What it shows. */
    Downloads downloads() {
        return App.downloads(this);
    }

    @Override
    public IBinder onBind(Intent intent) {
        return null;
    }

    @Override
    public int onStartCommand(Intent intent, int flags, int startId) {
        foreground();
        String action = intent.getAction();
        if (ADD.equals(action)) {
            resume(downloads.add(intent.getStringExtra(URL)));
        } else {
            Downloads.Entry e = downloads.get(intent.getIntExtra(ID, 0));
            if (e == null) { // taken from the list
                ((NotificationManager) getSystemService(NOTIFICATION_SERVICE)).cancel(intent.getIntExtra(ID, 0));
            } else if (PAUSE.equals(action)) {
                downloads.pause(e);
            } else if (RESUME.equals(action)) {
                resume(e);
            } else if (CANCEL.equals(action)) {
                downloads.remove(e);
            }
        }
        endIfIdle();
        return START_NOT_STICKY;
    }

    private void resume(Downloads.Entry e) {
        ProxyService.hold(this);
        downloads.resume(e);
    }

    @Override
    public void onDestroy() {
        downloads.forget(changes);
        downloads.pauseAll();
        super.onDestroy();
    }

    private void foreground() {
        Notification n =
                new Notification.Builder(this, CHANNEL)
                        .setSmallIcon(R.drawable.icon)
                        .setContentTitle(getString(R.string.downloads))
                        .setContentIntent(screen())
                        .setOngoing(true)
                        .build();
        if (Build.VERSION.SDK_INT >= 34) {
            startForeground(NOTIFICATION, n, ServiceInfo.FOREGROUND_SERVICE_TYPE_SPECIAL_USE);
        } else {
            startForeground(NOTIFICATION, n);
        }
    }

    private void endIfIdle() {
        if (!downloads.active()) {
            stopForeground(STOP_FOREGROUND_REMOVE);
            stopSelf(); // the notifications of downloads stay
            ProxyService.release(this);
        }
    }

    private void show(Downloads.Entry e) {
        NotificationManager manager = (NotificationManager) getSystemService(NOTIFICATION_SERVICE);
        if (e.removed()) {
            manager.cancel(e.id);
        } else {
            manager.notify(e.id, notification(e));
        }
    }

    private PendingIntent screen() {
        return PendingIntent.getActivity(this, 0, new Intent(this, MainActivity.class), PendingIntent.FLAG_IMMUTABLE);
    }

    private Notification notification(Downloads.Entry e) {
        DownloadState s = e.state();
        Notification.Builder b =
                new Notification.Builder(this, CHANNEL)
                        .setSmallIcon(R.drawable.icon)
                        .setContentTitle(s.name)
                        .setContentText(Texts.download(this, e))
                        .setContentIntent(open(this, e))
                        .setOnlyAlertOnce(true)
                        .setOngoing(s.active());
        if (s.active()) {
            b.setProgress(1000, Texts.permille(s), s.total <= 0);
        }
        for (Notification.Action a : actions(e)) {
            b.addAction(a);
        }
        return b.build();
    }

    private List<Notification.Action> actions(Downloads.Entry e) {
        List<Notification.Action> all = new ArrayList<Notification.Action>();
        DownloadState s = e.state();
        if (s.phase == DownloadState.Phase.DONE) {
            return all;
        }
        all.add(s.active() ? action(e, PAUSE, R.string.pause) : action(e, RESUME, R.string.resume));
        all.add(action(e, CANCEL, R.string.cancel));
        return all;
    }

    /** The service may have ended: all actions begin it in the foreground. */
    private Notification.Action action(Downloads.Entry e, String what, int label) {
        PendingIntent p =
                PendingIntent.getForegroundService(
                        this,
                        e.id,
                        intent(this, what).putExtra(ID, e.id),
                        PendingIntent.FLAG_IMMUTABLE | PendingIntent.FLAG_UPDATE_CURRENT);
        return new Notification.Action.Builder(null, getString(label), p).build();
    }

    /** Opens the file of a download that is done, the screen otherwise. */
    static PendingIntent open(Context context, Downloads.Entry e) {
        return PendingIntent.getActivity(
                context, e.id, view(context, e), PendingIntent.FLAG_IMMUTABLE | PendingIntent.FLAG_UPDATE_CURRENT);
    }

    static Intent view(Context context, Downloads.Entry e) {
        DownloadState s = e.state();
        if (s.phase != DownloadState.Phase.DONE || !s.place.startsWith("content:")) {
            return new Intent(context, MainActivity.class);
        }
        return new Intent(Intent.ACTION_VIEW)
                .setDataAndType(Uri.parse(s.place), Store.type(s.name))
                .addFlags(Intent.FLAG_GRANT_READ_URI_PERMISSION | Intent.FLAG_ACTIVITY_NEW_TASK);
    }
}
