package io.github.tributary.app;

import android.app.job.JobInfo;
import android.app.job.JobParameters;
import android.app.job.JobScheduler;
import android.app.job.JobService;
import android.content.ComponentName;
import android.content.Context;
import java.util.concurrent.TimeUnit;

/**
 * Has the system begin the process again now and then, while the proxy should run: if it was killed and the system does not
 * bring it back, apps stay offline as long as the system names a proxy that is not there, which {@link App} takes back.
 */
public final class Restart extends JobService {
    private static final int ID = 1;
    private static final long PERIOD_MILLIS = TimeUnit.MINUTES.toMillis(15); // the system takes no shorter one

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
        return false; // it is done
    }

    @Override
    public boolean onStopJob(JobParameters params) {
        return false;
    }
}
