package androidx.test.runner.lifecycle;

/** A stub of a type of androidx.test that Robolectric uses but that is not needed here. */
public enum ApplicationStage {
    PRE_ON_CREATE,
    CREATED
}
