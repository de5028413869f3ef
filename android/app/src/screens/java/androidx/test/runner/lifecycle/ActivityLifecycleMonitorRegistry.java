package androidx.test.runner.lifecycle;

/** What Robolectric calls of androidx.test, which is not needed here. */
public final class ActivityLifecycleMonitorRegistry {
    private ActivityLifecycleMonitorRegistry() {}

    public static void registerInstance(ActivityLifecycleMonitor monitor) {}
}
