package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.content.Intent;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.Report;
import java.nio.file.Files;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;

/** The log, and the part of it that is sent. */
@RunWith(RobolectricTestRunner.class)
public class LogActivityTest {
    private final Application app = RuntimeEnvironment.getApplication();

    private String text(LogActivity screen) {
        return ((TextView) screen.findViewById(R.id.log)).getText().toString();
    }

    @Test
    @SuppressWarnings("deprecation") // the other one is of Android 13
    public void whatIsReadIsSent() throws Exception {
        Files.write(Report.before(Daemon.log(app)).toPath(), "panic: before\n".getBytes("UTF-8"));
        Files.write(Daemon.log(app).toPath(), "time=1 msg=x error=\"lookup cdn.example.com: timeout\"\n".getBytes("UTF-8"));
        ActivityController<LogActivity> controller = Robolectric.buildActivity(LogActivity.class).setup();
        String text = text(controller.get());
        assertTrue(text, text.startsWith("Tributary ") && text.contains("\nAndroid ") && text.contains("mobile data WIFI_ONLY, consent false"));
        assertTrue(text, text.endsWith("\npanic: before\n\ntime=1 msg=x error=\"lookup (name): timeout\"\n"));
        Files.write(Daemon.log(app).toPath(), "time=2 msg=later\n".getBytes("UTF-8"));
        controller.recreate();
        assertEquals("what is sent was never read", text, text(controller.get()));
        controller.get().findViewById(R.id.send).performClick();
        Intent chooser = shadowOf(app).getNextStartedActivity();
        assertEquals(Intent.ACTION_CHOOSER, chooser.getAction());
        Intent send = (Intent) chooser.getParcelableExtra(Intent.EXTRA_INTENT);
        assertEquals(text, send.getStringExtra(Intent.EXTRA_TEXT));
        assertFalse(text.contains("example.com"));
    }

    @Test
    public void theScreenLeadsThere() {
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        main.findViewById(R.id.log).performClick();
        assertEquals(LogActivity.class.getName(), shadowOf(app).getNextStartedActivity().getComponent().getClassName());
        String about = ((TextView) main.findViewById(R.id.about)).getText().toString();
        assertTrue(about, about.startsWith("Tributary ") && about.contains("Apache"));
    }
}
