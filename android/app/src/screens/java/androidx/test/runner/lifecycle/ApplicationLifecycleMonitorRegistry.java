package androidx.test.runner.lifecycle;

/** What Robolectric calls of androidx.test, which is not needed here. */
public final class ApplicationLifecycleMonitorRegistry {
    private ApplicationLifecycleMonitorRegistry() {}

    public static void registerInstance(ApplicationLifecycleMonitor monitor) {}
}
