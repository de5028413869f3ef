package androidx.test.runner.lifecycle;

/** What Robolectric calls of androidx.test, which is not needed here. */
public interface ApplicationLifecycleMonitor {}
