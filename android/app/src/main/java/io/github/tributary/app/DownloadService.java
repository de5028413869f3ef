package io.github.tributary.app;

import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.app.PendingIntent;
import android.app.Service;
import android.content.Context;
import android.content.Intent;
import android.content.pm.ServiceInfo;
import android.os.Build;
import android.os.Handler;
import android.os.IBinder;
import android.os.Looper;
import android.os.SystemClock;
import android.text.format.Formatter;
import io.github.tributary.R;
import io.github.tributary.core.Download;
import io.github.tributary.core.FileName;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Downloads files through the daemon, each with a notification to pause it, go on, and give it up. The main thread owns the
 * list; each download has a thread, which posts.
 */
public class DownloadService extends Service {
    private static final String ADD = "io.github.tributary.ADD";
    private static final String PAUSE = "io.github.tributary.PAUSE";
    private static final String RESUME = "io.github.tributary.RESUME";
    private static final String CANCEL = "io.github.tributary.CANCEL";
    private static final String URL = "url";
    private static final String ID = "id";
    private static final String CHANNEL = "downloads";
    private static final int FIRST_ID = 100; // of notifications
    private static final long REDRAW_MILLIS = 500;
    private static final int ATTEMPTS = 40; // to reach the daemon, which may be starting
    private static final long BETWEEN_MILLIS = 250;

    /** What is downloaded. */
    private static final class Item {
        final int id;
        final String url;
        final String name;
        Store.Target target;
        boolean active; // neither paused, over nor failed; guarded by the item, as is download
        Download download; // what its thread is doing
        String validator; // of what the file holds
        long bytes;
        long total = -1;
        String error = "";
        boolean done;
        boolean given; // up

        Item(int id, String url) {
            this.id = id;
            this.url = url;
            this.name = FileName.of(url);
        }
    }

    private final Handler main = new Handler(Looper.getMainLooper());
    private final Map<Integer, Item> items = new LinkedHashMap<Integer, Item>();
    private int lastId = FIRST_ID;
    private int foreground; // the item whose notification keeps the service in the foreground; 0 = none

    static void start(Context context, String url) {
        context.startForegroundService(new Intent(context, DownloadService.class).setAction(ADD).putExtra(URL, url));
    }

    @Override
    public void onCreate() {
        super.onCreate();
        NotificationManager manager = (NotificationManager) getSystemService(NOTIFICATION_SERVICE);
        manager.createNotificationChannel(
                new NotificationChannel(CHANNEL, getString(R.string.downloads), NotificationManager.IMPORTANCE_LOW));
    }

    @Override
    public IBinder onBind(Intent intent) {
        return null;
    }

    @Override
    public int onStartCommand(Intent intent, int flags, int startId) {
        String action = intent.getAction();
        if (ADD.equals(action)) {
            Item it = new Item(++lastId, intent.getStringExtra(URL));
            items.put(it.id, it);
            run(it);
        } else {
            Item it = items.get(intent.getIntExtra(ID, 0));
            if (it == null) { // of a process that is no more
                show(new Item(FIRST_ID, ""), true); // who starts a service in the foreground must show it
                finishIfIdle();
            } else if (PAUSE.equals(action)) {
                pause(it);
            } else if (RESUME.equals(action) && !it.active) {
                run(it);
            } else if (CANCEL.equals(action)) {
                giveUp(it);
            }
        }
        return START_NOT_STICKY;
    }

    @Override
    public void onDestroy() {
        for (Item it : items.values()) {
            pause(it);
        }
        super.onDestroy();
    }

    /** Where the daemon listens. */
    InetSocketAddress proxy() {
        int colon = ProxyService.LISTEN.lastIndexOf(':');
        return new InetSocketAddress(
                ProxyService.LISTEN.substring(0, colon), Integer.parseInt(ProxyService.LISTEN.substring(colon + 1)));
    }

    /** Where files go. */
    Store store() {
        return new Store(this);
    }

    private void run(final Item it) {
        it.error = "";
        try {
            if (it.target == null) {
                it.target = store().create(it.name);
            }
        } catch (IOException e) {
            failed(it, e);
            show(it);
            return;
        }
        it.active = true;
        final String validator = it.validator;
        final long bytes = it.validator == null ? 0 : it.bytes;
        final Store.Target target = it.target;
        new Thread("download") {
            @Override
            public void run() {
                fetch(it, target, validator, bytes);
            }
        }.start();
        show(it);
    }

    /** Downloads, on a thread of its own. */
    private void fetch(final Item it, Store.Target target, String validator, long bytes) {
        Download d = null;
        IOException error = null;
        try (Store.Opened file = target.open()) {
            for (int i = 1; ; i++) {
                d = new Download(it.url, proxy(), file.channel, new Told(it));
                if (validator != null) {
                    d.resume(validator, bytes);
                }
                if (!begin(it, d)) {
                    throw new IOException("paused");
                }
                try {
                    d.run();
                    break;
                } catch (ConnectException e) {
                    if (i == ATTEMPTS) {
                        throw e;
                    }
                    SystemClock.sleep(BETWEEN_MILLIS);
                }
            }
        } catch (IOException e) {
            error = e;
        }
        if (error == null) {
            try {
                target.finish();
            } catch (IOException e) {
                error = e;
            }
        }
        final Download last = d;
        final IOException why = error;
        main.post(
                new Runnable() {
                    @Override
                    public void run() {
                        ended(it, last, why);
                    }
                });
    }

    /** Makes a download the one that pause stops; false = it was paused before. */
    private boolean begin(Item it, Download d) {
        synchronized (it) {
            it.download = d;
            return it.active;
        }
    }

    private final class Told implements Download.Progress {
        private final Item item;
        private long shown;

        Told(Item item) {
            this.item = item;
        }

        @Override
        public void at(final long bytes, final long total) {
            long now = SystemClock.elapsedRealtime();
            if (now - shown < REDRAW_MILLIS && bytes != total) {
                return;
            }
            shown = now;
            main.post(
                    new Runnable() {
                        @Override
                        public void run() {
                            item.bytes = bytes;
                            item.total = total;
                            show(item);
                        }
                    });
        }
    }

    private void ended(Item it, Download d, IOException why) {
        boolean stopped;
        synchronized (it) {
            stopped = !it.active;
            it.active = false;
            it.download = null;
        }
        if (d != null) {
            it.validator = d.validator();
            it.bytes = d.bytes();
        }
        if (it.given) {
            it.target.delete();
            items.remove(it.id);
        } else if (why == null) {
            it.done = true;
        } else if (!stopped) {
            failed(it, why);
        }
        show(it);
        finishIfIdle();
    }

    private void failed(Item it, IOException why) {
        it.error = why.getMessage() == null ? why.getClass().getSimpleName() : why.getMessage();
    }

    private void pause(Item it) {
        Download d;
        synchronized (it) {
            d = it.download;
            it.active = false;
        }
        if (d != null) {
            d.cancel();
        }
    }

    private void giveUp(Item it) {
        it.given = true;
        boolean ends = it.download != null || it.active; // its thread says so when it has
        pause(it);
        if (!ends) {
            if (it.target != null && !it.done) {
                it.target.delete();
            }
            items.remove(it.id);
            show(it);
            finishIfIdle();
        }
    }

    private boolean active() {
        for (Item it : items.values()) {
            if (it.active) {
                return true;
            }
        }
        return false;
    }

    private void finishIfIdle() {
        if (active()) {
            return;
        }
        stopForeground(STOP_FOREGROUND_DETACH); // what is paused can be gone on with from its notification
        foreground = 0;
        boolean paused = false;
        for (Item it : items.values()) {
            paused = paused || !it.done;
        }
        if (!paused) {
            stopSelf();
        }
    }

    /** Shows what an item does; the first that runs keeps the service in the foreground. */
    private void show(Item it) {
        show(it, it.active && (foreground == 0 || foreground == it.id));
    }

    private void show(Item it, boolean inForeground) {
        NotificationManager manager = (NotificationManager) getSystemService(NOTIFICATION_SERVICE);
        if (it.given) {
            manager.cancel(it.id);
            return;
        }
        Notification n = notification(it);
        if (inForeground) {
            foreground = it.id;
            if (Build.VERSION.SDK_INT >= 34) {
                startForeground(it.id, n, ServiceInfo.FOREGROUND_SERVICE_TYPE_SPECIAL_USE);
            } else {
                startForeground(it.id, n);
            }
        } else {
            manager.notify(it.id, n);
        }
    }

    private Notification notification(Item it) {
        Notification.Builder b =
                new Notification.Builder(this, CHANNEL)
                        .setSmallIcon(R.drawable.icon)
                        .setContentTitle(it.name)
                        .setContentText(text(it))
                        .setOnlyAlertOnce(true)
                        .setOngoing(it.active);
        if (it.active) {
            int permille = it.total > 0 ? (int) (1000 * it.bytes / it.total) : 0;
            b.setProgress(1000, permille, it.total <= 0);
            b.addAction(action(it, PAUSE, R.string.pause));
        } else if (!it.done) {
            b.addAction(action(it, RESUME, R.string.resume));
        }
        if (!it.done) {
            b.addAction(action(it, CANCEL, R.string.cancel));
        }
        return b.build();
    }

    private Notification.Action action(Item it, String what, int label) {
        Intent intent = new Intent(this, DownloadService.class).setAction(what).putExtra(ID, it.id);
        int flags = PendingIntent.FLAG_IMMUTABLE | PendingIntent.FLAG_UPDATE_CURRENT;
        PendingIntent p =
                what.equals(RESUME)
                        ? PendingIntent.getForegroundService(this, it.id, intent, flags)
                        : PendingIntent.getService(this, it.id, intent, flags);
        return new Notification.Action.Builder(null, getString(label), p).build();
    }

    private String text(Item it) {
        if (!it.error.isEmpty()) {
            return getString(R.string.download_failed, it.error);
        }
        String have = Formatter.formatFileSize(this, it.bytes);
        if (it.done) {
            return getString(R.string.download_done, have);
        }
        return it.total < 0 ? have : getString(R.string.download_part, have, Formatter.formatFileSize(this, it.total));
    }
}
