package io.github.tributary.app;

import android.app.Application;
import android.content.Context;
import android.util.Log;
import io.github.tributary.core.Fetches;
import io.github.tributary.core.GlobalProxy;

/**
 * The process. When it starts, it has no daemon yet: if the system still names our proxy, an earlier process was
 * killed, and apps are offline until that setting is undone.
 */
public final class App extends Application {
    private static final String TAG = "tributary";

    private GlobalProxy proxy;
    private final Fetches fetches = new Fetches();
    private final TestRun test = new TestRun(this);
    private Downloads downloads;
    private Resumption resumption;
    private Relays relays;
    private String ended = "";

    @Override
    public void onCreate() {
        super.onCreate();
        proxy = ProxySetting.of(this);
        try {
            proxy.clear();
        } catch (SecurityException e) {
            Log.e(TAG, "the system's proxy cannot be taken back", e);
        }
        ended = LastEnd.line(this);
        downloads(this);
        final Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        Thread.setDefaultUncaughtExceptionHandler(
                new Thread.UncaughtExceptionHandler() {
                    @Override
                    public void uncaughtException(Thread t, Throwable e) {
                        try {
                            proxy.end();
                        } catch (RuntimeException forbidden) {
                            Log.e(TAG, "the system's proxy cannot be taken back", forbidden);
                        }
                        if (before != null) {
                            before.uncaughtException(t, e);
                        }
                    }
                });
    }

    /** The proxy that the system names to apps. */
    static GlobalProxy proxy(Context context) {
        return ((App) context.getApplicationContext()).proxy;
    }

    /** Returns what ended the process before this one, for the user; "" = nothing did, or the user has seen it. */
    static String ended(Context context) {
        return ((App) context.getApplicationContext()).ended;
    }

    /** Notes that the user has seen what ended the process before. */
    static void endSeen(Context context) {
        ((App) context.getApplicationContext()).ended = "";
    }

    /** Returns the object that hands files over to the daemon. */
    static Fetches fetches(Context context) {
        return ((App) context.getApplicationContext()).fetches;
    }

    /** Returns what the user wants of relays. For the main thread. */
    static Relays relays(Context context) {
        App app = (App) context.getApplicationContext();
        if (app.relays == null) {
            app.relays = new Relays(app);
        }
        return app.relays;
    }

    /** Returns the test download of the first run. For the main thread. */
    static TestRun test(Context context) {
        return ((App) context.getApplicationContext()).test;
    }

    /** Returns the downloads of this process. For the main thread. */
    static Downloads downloads(Context context) {
        App app = (App) context.getApplicationContext();
        if (app.downloads == null) {
            app.downloads = new Downloads(app);
            DownloadNotifications shown = new DownloadNotifications(app);
            shown.mend(app.downloads);
            app.downloads.listen(shown);
            app.resumption = new Resumption(app, app.downloads);
        }
        return app.downloads;
    }
}
