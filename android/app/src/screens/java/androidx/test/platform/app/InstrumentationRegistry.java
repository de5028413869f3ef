package androidx.test.platform.app;

import android.app.Instrumentation;
import android.os.Bundle;

/** What Robolectric calls of androidx.test, which is not needed here. */
public final class InstrumentationRegistry {
    private InstrumentationRegistry() {}

    public static void registerInstance(Instrumentation instrumentation, Bundle arguments) {}
}
