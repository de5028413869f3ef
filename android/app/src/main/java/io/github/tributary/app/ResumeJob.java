package io.github.tributary.app;

import android.annotation.TargetApi;
import android.app.Notification;
import android.app.job.JobParameters;
import android.app.job.JobService;
import android.content.ComponentName;
import android.content.Context;
import android.content.Intent;
import android.content.ServiceConnection;
import android.os.Build;
import android.os.IBinder;
import io.github.tributary.core.LinkRow;
import java.util.Collections;

/**
 * Resumes downloads when there is a network. It binds the service, which may not come to the foreground by itself since
 * Android 12, and lasts while any download is active. A job that the user started (Android 14) has no time limit; other
 * jobs are stopped after some minutes and run again later.
 */
public class ResumeJob extends JobService {
    private final ServiceConnection connection =
            new ServiceConnection() {
                @Override
                public void onServiceConnected(ComponentName name, IBinder binder) {}

                @Override
                public void onServiceDisconnected(ComponentName name) {}
            };

    private final Downloads.Listener downloads =
            new Downloads.Listener() {
                @Override
                public void changed(Downloads.Entry e) {
                    if (!all().active()) {
                        JobParameters done = params;
                        end();
                        finished(done, all().left());
                    }
                }
            };

    private JobParameters params; // of the running job; null = none

    /** Returns the downloads of this process. */
    Downloads all() {
        return App.downloads(this);
    }

    /** Ends the job; again = it should run again later. */
    void finished(JobParameters job, boolean again) {
        jobFinished(job, again);
    }

    /** Gives the job its notification: that of the service, which removes it. */
    @TargetApi(34)
    void show(JobParameters job, Notification n) {
        setNotification(job, ProxyService.NOTIFICATION, n, JobService.JOB_END_NOTIFICATION_POLICY_DETACH);
    }

    @Override
    public boolean onStartJob(JobParameters job) {
        if (Build.VERSION.SDK_INT >= 34 && job.isUserInitiatedJob()) { // at once, or the system ends the app
            ProxyNotification.channel(this);
            Notification n = ProxyNotification.of(this, ProxyService.status(), Collections.<LinkRow>emptyList(), "");
            show(job, n);
        }
        if (!all().left()) {
            return false;
        }
        params = job;
        bindService(new Intent(this, ProxyService.class), connection, Context.BIND_AUTO_CREATE);
        all().resumeInterrupted();
        all().listen(downloads);
        return true;
    }

    @Override
    public boolean onStopJob(JobParameters job) {
        if (params != null) {
            end();
        }
        return all().left();
    }

    private void end() {
        params = null;
        all().forget(downloads);
        unbindService(connection);
    }
}
