package io.github.tributary.app;

import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.app.PendingIntent;
import android.content.Context;
import android.content.Intent;
import io.github.tributary.R;
import io.github.tributary.core.LinkRow;
import io.github.tributary.core.Status;
import java.util.List;

/** The notification of the service: that it runs, how fast each network is, and what is left of mobile data. */
final class ProxyNotification {
    private static final String CHANNEL = "running";
    private static final String WARNINGS = "warnings";
    private static final int WARNING = 2;
    private static final int ENDED = 3;

    private ProxyNotification() {}

    static void channel(Context c) {
        manager(c).createNotificationChannel(
                new NotificationChannel(CHANNEL, c.getString(R.string.channel), NotificationManager.IMPORTANCE_LOW));
    }

    /** status null = the daemon has not reported yet; trouble "" = none. */
    static Notification of(Context c, Status status, List<LinkRow> links, String trouble) {
        PendingIntent open = PendingIntent.getActivity(c, 0, new Intent(c, MainActivity.class), PendingIntent.FLAG_IMMUTABLE);
        PendingIntent stop =
                PendingIntent.getForegroundService(
                        c, 0, new Intent(c, ProxyService.class).setAction(ProxyService.STOP), PendingIntent.FLAG_IMMUTABLE);
        String line = trouble.isEmpty() ? line(c, status) : trouble;
        return new Notification.Builder(c, CHANNEL)
                .setSmallIcon(R.drawable.icon)
                .setContentTitle(c.getString(R.string.app_name))
                .setContentText(line)
                .setStyle(new Notification.BigTextStyle().bigText(line + details(c, status, links)))
                .setContentIntent(open)
                .setOngoing(true)
                .setOnlyAlertOnce(true)
                .addAction(new Notification.Action.Builder(null, c.getString(R.string.stop), stop).build())
                .build();
    }

    /** Shows that the proxy should run but the system does not let it start by itself. */
    static void ended(Context c) {
        channel(c);
        PendingIntent start = PendingIntent.getActivity(c, 2, MainActivity.starting(c), PendingIntent.FLAG_IMMUTABLE);
        manager(c).notify(
                        ENDED,
                        new Notification.Builder(c, CHANNEL)
                                .setSmallIcon(R.drawable.icon)
                                .setContentTitle(c.getString(R.string.ended_title))
                                .setContentText(c.getString(R.string.ended_start))
                                .setContentIntent(start)
                                .setAutoCancel(true)
                                .build());
    }

    /** Removes that notification, since the proxy runs again. */
    static void runs(Context c) {
        manager(c).cancel(ENDED);
    }

    private static NotificationManager manager(Context c) {
        return (NotificationManager) c.getSystemService(Context.NOTIFICATION_SERVICE);
    }

    /** Warns that most of a limit is used; each name has its own warning. */
    static void warn(Context c, String name, Status.Quota q) {
        manager(c).createNotificationChannel(
                new NotificationChannel(WARNINGS, c.getString(R.string.channel_warnings), NotificationManager.IMPORTANCE_DEFAULT));
        PendingIntent open = PendingIntent.getActivity(c, 0, new Intent(c, MainActivity.class), PendingIntent.FLAG_IMMUTABLE);
        String left = c.getString(R.string.warning, Texts.size(c, q.left), Texts.size(c, q.limit));
        manager(c).notify(
                name,
                WARNING,
                new Notification.Builder(c, WARNINGS)
                        .setSmallIcon(R.drawable.icon)
                        .setContentTitle(c.getString(name.contains(" day ") ? R.string.warning_day : R.string.warning_month))
                        .setContentText(left)
                        .setContentIntent(open)
                        .setAutoCancel(true)
                        .build());
    }

    private static String line(Context c, Status status) {
        if (status == null || status.transfers == 0) {
            return c.getString(R.string.notification_idle);
        }
        return c.getString(
                R.string.notification,
                Texts.size(c, status.rate()),
                c.getResources().getQuantityString(R.plurals.downloads_running, status.transfers, status.transfers));
    }

    /** Returns a line for each network in use, each starting with a line feed. */
    private static String details(Context c, Status status, List<LinkRow> links) {
        StringBuilder b = new StringBuilder();
        for (LinkRow row : links) {
            if (row.link == null) {
                continue;
            }
            boolean idle = status == null || status.transfers == 0;
            String rate = Texts.size(c, idle ? 0 : row.link.goodput);
            b.append('\n').append(c.getString(R.string.notification_link, Texts.kind(c, row.net.kind), rate, Texts.size(c, row.link.bytes)));
            if (row.link.monthlyLeft >= 0) {
                b.append(c.getString(R.string.notification_left, Texts.size(c, row.link.monthlyLeft)));
            }
        }
        if (status != null) {
            b.append('\n').append(c.getString(R.string.notification_total, Texts.size(c, status.bytes())));
        }
        return b.toString();
    }
}
