package androidx.test.runner.intent;

/** What Robolectric calls of androidx.test, which is not needed here. */
public final class IntentStubberRegistry {
    private IntentStubberRegistry() {}

    public static boolean isLoaded() {
        return false;
    }
}
