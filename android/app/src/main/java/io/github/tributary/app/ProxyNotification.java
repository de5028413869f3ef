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

    private ProxyNotification() {}

    static void channel(Context c) {
        NotificationManager manager = (NotificationManager) c.getSystemService(Context.NOTIFICATION_SERVICE);
        manager.createNotificationChannel(
                new NotificationChannel(CHANNEL, c.getString(R.string.channel), NotificationManager.IMPORTANCE_LOW));
    }

    /** Status null = the daemon has said nothing yet; trouble "" = there is none. */
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

    private static String line(Context c, Status status) {
        if (status == null || status.transfers == 0) {
            return c.getString(R.string.notification_idle);
        }
        return c.getString(
                R.string.notification,
                Texts.size(c, status.rate()),
                c.getResources().getQuantityString(R.plurals.downloads_running, status.transfers, status.transfers));
    }

    /** A line for each network that is used, each beginning with a line feed. */
    private static String details(Context c, Status status, List<LinkRow> links) {
        StringBuilder b = new StringBuilder();
        for (LinkRow row : links) {
            if (row.use != LinkRow.Use.USED) {
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
