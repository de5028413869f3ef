package io.github.tributary.app;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.app.AlertDialog;
import android.content.Context;
import android.content.DialogInterface;
import android.content.Intent;
import android.os.Build;
import android.os.Looper;
import android.view.View;
import android.widget.Button;
import android.widget.EditText;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.MobilePolicy;
import java.io.File;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.shadows.ShadowAlertDialog;

/** The first run. */
@RunWith(RobolectricTestRunner.class)
public class WelcomeTest {
    private Scene scene;
    private Scene.Running running;
    private ActivityController<WelcomeActivity> controller;
    private WelcomeActivity screen;

    @Before
    public void begin() {
        scene = new Scene();
        running = scene.test();
        controller = Robolectric.buildActivity(WelcomeActivity.class).setup();
        screen = controller.get();
    }

    @After
    public void end() {
        App.test(screen).stop();
        scene.close();
    }

    private String text(int id) {
        return ((TextView) screen.findViewById(id)).getText().toString();
    }

    private void pass(int seconds) {
        shadowOf(Looper.getMainLooper()).idleFor(seconds, TimeUnit.SECONDS);
    }

    private void untilItEnds() throws InterruptedException {
        for (int i = 0; i < 1000 && App.test(screen).runs(); i++) {
            Thread.sleep(10); // for its thread
            Scene.idle();
        }
        assertFalse("it does not end", App.test(screen).runs());
        pass(1);
    }

    @Test
    public void comesOnce() {
        Context app = screen.getApplication();
        app.getSharedPreferences("settings", Context.MODE_PRIVATE).edit().clear().commit();
        MainActivity first = Robolectric.buildActivity(MainActivity.class).setup().get();
        assertEquals(WelcomeActivity.class.getName(), shadowOf(first).getNextStartedActivity().getComponent().getClassName());
        controller.pause().resume(); // becomes visible
        MainActivity second = Robolectric.buildActivity(MainActivity.class).setup().get();
        assertNull("again", shadowOf(second).getNextStartedActivity());
    }

    @Test
    public void whoHasUsedItKnowsIt() {
        screen.getApplication().getSharedPreferences("settings", Context.MODE_PRIVATE).edit().clear().commit();
        scene.settings.setRun(false);
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        assertNull(shadowOf(main).getNextStartedActivity());
    }

    @Test
    public void nothingIsAskedBeforeItIsNeeded() {
        assertNull("a permission", shadowOf(screen).getLastRequestedPermission());
        assertNull("a question", ShadowAlertDialog.getLatestDialog());
        assertNull("it started", shadowOf(screen.getApplication()).getNextStartedService());
        screen.findViewById(R.id.agree).performClick();
        AlertDialog question = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        assertFalse("spent before the answer", scene.settings.policy().mobileAllowed());
        question.getButton(DialogInterface.BUTTON_POSITIVE).performClick();
        pass(1);
        assertTrue(scene.settings.policy().mobileAllowed());
        assertEquals(screen.getString(R.string.chosen_mobile), text(R.id.chosen));
        screen.findViewById(R.id.refuse).performClick();
        assertEquals(MobilePolicy.Mode.WIFI_ONLY, scene.settings.policy().mode);
        assertEquals(screen.getString(R.string.chosen_wifi), text(R.id.chosen));
        screen.findViewById(R.id.test).performClick();
        Intent started = shadowOf(screen.getApplication()).getNextStartedService();
        assertEquals(ProxyService.class.getName(), started.getComponent().getClassName());
        if (Build.VERSION.SDK_INT >= 33) {
            assertArrayEquals(new String[] {Manifest.permission.POST_NOTIFICATIONS}, shadowOf(screen).getLastRequestedPermission().requestedPermissions);
        }
    }

    @Test
    public void showsWhatBothNetworksBring() throws Exception {
        screen.findViewById(R.id.test).performClick();
        running.at(1, 0);
        pass(4);
        running.at(12, 8);
        pass(1);
        assertTrue(text(R.id.result), text(R.id.result).startsWith("20"));
        assertEquals(screen.getString(R.string.test_stop), text(R.id.test));
        assertEquals("it changes all the time", View.ACCESSIBILITY_LIVE_REGION_NONE, screen.findViewById(R.id.result).getAccessibilityLiveRegion());
        running.at(30, 21); // more than allowed
        untilItEnds();
        String result = text(R.id.result);
        assertTrue(result, result.contains("Both networks helped: Wi-Fi 59%, Mobile data 41%"));
        assertEquals(View.ACCESSIBILITY_LIVE_REGION_POLITE, screen.findViewById(R.id.result).getAccessibilityLiveRegion());
        assertEquals(screen.getString(R.string.done), ((Button) screen.findViewById(R.id.finish)).getText().toString());
        File left = new File(screen.getCacheDir(), "test.part");
        for (int i = 0; i < 1000 && left.exists(); i++) {
            Thread.sleep(10);
        }
        assertFalse("the file is left", left.exists());
        assertEquals("it is among the downloads", 0, App.downloads(screen).all().size());
    }

    @Test
    public void saysIfOneNetworkDidItAlone() throws Exception {
        screen.findViewById(R.id.test).performClick();
        running.at(3, 0);
        pass(1);
        running.at(9, 0);
        pass(21); // longer than allowed
        untilItEnds();
        assertTrue(text(R.id.result), text(R.id.result).contains("Only one network helped: Wi-Fi 100%"));
    }

    @Test
    public void endsWhenNothingComes() throws Exception {
        screen.findViewById(R.id.test).performClick();
        pass(61);
        untilItEnds();
        assertEquals(screen.getString(R.string.test_nothing), text(R.id.result));
        assertEquals(screen.getString(R.string.test_again), text(R.id.test));
    }

    @Test
    public void theUserNamesAnotherFile() {
        EditText line = (EditText) screen.findViewById(R.id.url);
        line.setText("no link");
        screen.findViewById(R.id.test).performClick();
        assertNotNull(line.getError());
        assertFalse(App.test(screen).runs());
        line.setText("https://mirror.example.org/large.bin");
        screen.findViewById(R.id.test).performClick();
        assertEquals("https://mirror.example.org/large.bin", App.test(screen).state().source.url);
    }

    @Test
    public void leavingEndsTheTest() throws Exception {
        screen.findViewById(R.id.test).performClick();
        running.at(3, 0);
        screen.findViewById(R.id.finish).performClick();
        assertTrue(screen.isFinishing());
        controller.pause().stop().destroy();
        for (int i = 0; i < 1000 && App.test(screen).runs(); i++) {
            Thread.sleep(10);
            Scene.idle();
        }
        assertFalse(App.test(screen).runs());
    }
}
