package androidx.test.platform.app;

import android.app.Instrumentation;
import android.os.Bundle;

/** A stub of a type of androidx.test that Robolectric uses but that is not needed here. */
public final class InstrumentationRegistry {
    private InstrumentationRegistry() {}

    public static void registerInstance(Instrumentation instrumentation, Bundle arguments) {}
}
