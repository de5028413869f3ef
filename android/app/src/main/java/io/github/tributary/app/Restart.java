package io.github.tributary.app;

import android.app.job.JobInfo;
import android.app.job.JobParameters;
import android.app.job.JobScheduler;
import android.app.job.JobService;
import android.content.ComponentName;
import android.content.Context;
import java.util.concurrent.TimeUnit;

/**
 * Makes the system start the process again from time to time while the proxy should run: if the process was killed and
 * the system does not restart it, apps stay offline while the system names an absent proxy. {@link App} undoes that.
 */
public final class Restart extends JobService {
    private static final int ID = 1;
    private static final long PERIOD_MILLIS = TimeUnit.MINUTES.toMillis(15); // the system accepts no shorter one

    static void plan(Context context) {
        JobScheduler jobs = (JobScheduler) context.getSystemService(Context.JOB_SCHEDULER_SERVICE);
        jobs.schedule(new JobInfo.Builder(ID, new ComponentName(context, Restart.class)).setPeriodic(PERIOD_MILLIS).build());
    }

    static void cancel(Context context) {
        ((JobScheduler) context.getSystemService(Context.JOB_SCHEDULER_SERVICE)).cancel(ID);
    }

    @Override
    public boolean onStartJob(JobParameters params) {
        if (!new Settings(this).run()) {
            cancel(this);
        } else if (!ProxyService.runs() && !ProxyService.start(this)) { // Android 12 does not let it start by itself
            ProxyNotification.ended(this);
        }
        return false; // no work is left
    }

    @Override
    public boolean onStopJob(JobParameters params) {
        return false;
    }
}
