package androidx.test.runner.intent;

/** A stub of a type of androidx.test that Robolectric uses but that is not needed here. */
public final class IntentMonitorRegistry {
    private IntentMonitorRegistry() {}

    public static void registerInstance(IntentMonitor monitor) {}
}
