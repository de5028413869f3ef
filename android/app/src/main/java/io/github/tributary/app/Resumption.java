package io.github.tributary.app;

import android.app.job.JobInfo;
import android.app.job.JobScheduler;
import android.content.ComponentName;
import android.content.Context;
import android.content.SharedPreferences;
import android.os.Build;
import android.os.PersistableBundle;
import android.util.Log;

/**
 * Makes the system resume downloads by {@link ResumeJob} while any is left, even after the process was killed or the
 * phone restarted. For the main thread.
 */
final class Resumption implements Downloads.Listener, SharedPreferences.OnSharedPreferenceChangeListener {
    static final int JOB = 2;

    private static final String TAG = "tributary";
    private static final String TYPE = "type";
    private static final int NONE = -1;

    private final Context context;
    private final Downloads downloads;
    private final Settings settings;
    private final JobScheduler jobs;
    private int planned; // NONE, or the type of network that the job waits for

    Resumption(Context context, Downloads downloads) {
        this.context = context;
        this.downloads = downloads;
        settings = new Settings(context);
        jobs = (JobScheduler) context.getSystemService(Context.JOB_SCHEDULER_SERVICE);
        JobInfo before = jobs.getPendingJob(JOB);
        planned = before == null ? NONE : before.getExtras().getInt(TYPE, NONE);
        downloads.listen(this);
        settings.listen(this);
        plan();
    }

    @Override
    public void changed(Downloads.Entry e) {
        plan();
    }

    @Override
    public void onSharedPreferenceChanged(SharedPreferences prefs, String key) {
        plan();
    }

    private void plan() {
        int type = NONE;
        if (downloads.left()) {
            type = settings.policy().mobileAllowed() && downloads.leftForAll() ? JobInfo.NETWORK_TYPE_ANY : JobInfo.NETWORK_TYPE_UNMETERED;
        }
        if (type == planned) {
            return;
        }
        planned = type;
        if (type == NONE) {
            jobs.cancel(JOB);
        } else if (Build.VERSION.SDK_INT < 34 || !schedule(job(type).setUserInitiated(true))) {
            schedule(job(type));
        }
    }

    private JobInfo.Builder job(int type) {
        PersistableBundle extras = new PersistableBundle();
        extras.putInt(TYPE, type);
        return new JobInfo.Builder(JOB, new ComponentName(context, ResumeJob.class))
                .setRequiredNetworkType(type)
                .setPersisted(true)
                .setExtras(extras);
    }

    /** Returns false if the system rejects it: a job that the user starts needs the app to be visible. */
    private boolean schedule(JobInfo.Builder job) {
        try {
            return jobs.schedule(job.build()) == JobScheduler.RESULT_SUCCESS;
        } catch (IllegalStateException | SecurityException e) {
            Log.w(TAG, "not planned", e);
            return false;
        }
    }
}
