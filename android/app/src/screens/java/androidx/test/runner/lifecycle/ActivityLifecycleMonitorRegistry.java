package androidx.test.runner.lifecycle;

/** A stub of a type of androidx.test that Robolectric uses but that is not needed here. */
public final class ActivityLifecycleMonitorRegistry {
    private ActivityLifecycleMonitorRegistry() {}

    public static void registerInstance(ActivityLifecycleMonitor monitor) {}
}
