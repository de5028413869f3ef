package androidx.test.runner.intent;

/** What Robolectric calls of androidx.test, which is not needed here. */
public interface IntentMonitor {}
