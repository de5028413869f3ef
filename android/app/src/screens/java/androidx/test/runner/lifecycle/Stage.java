package androidx.test.runner.lifecycle;

/** What Robolectric calls of androidx.test, which is not needed here. */
public enum Stage {
    PRE_ON_CREATE,
    CREATED,
    STARTED,
    RESUMED,
    PAUSED,
    STOPPED,
    RESTARTED,
    DESTROYED
}
