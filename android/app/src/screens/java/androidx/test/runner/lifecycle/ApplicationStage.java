package androidx.test.runner.lifecycle;

/** What Robolectric calls of androidx.test, which is not needed here. */
public enum ApplicationStage {
    PRE_ON_CREATE,
    CREATED
}
