package androidx.test.runner.intent;

/** What Robolectric calls of androidx.test, which is not needed here. */
public final class IntentMonitorRegistry {
    private IntentMonitorRegistry() {}

    public static void registerInstance(IntentMonitor monitor) {}
}
