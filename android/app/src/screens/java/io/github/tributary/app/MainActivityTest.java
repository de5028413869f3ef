package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.AlertDialog;
import android.content.DialogInterface;
import android.content.Intent;
import android.os.Looper;
import android.widget.Button;
import android.widget.EditText;
import android.widget.RadioGroup;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.MobilePolicy;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowAlertDialog;

/** The screen, and what starts with the phone. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = 35)
public class MainActivityTest {
    private MainActivity screen;
    private Settings settings;

    @Before
    public void open() {
        screen = Robolectric.buildActivity(MainActivity.class).setup().get();
        settings = new Settings(screen);
    }

    private int mode() {
        return ((RadioGroup) screen.findViewById(R.id.mode)).getCheckedRadioButtonId();
    }

    private AlertDialog choose(int id) {
        ((RadioGroup) screen.findViewById(R.id.mode)).check(id);
        return (AlertDialog) ShadowAlertDialog.getLatestDialog();
    }

    private void answer(AlertDialog question, int button) {
        question.getButton(button).performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    @Test
    public void mobileDataIsAskedAboutFirst() {
        assertEquals(R.id.wifi_only, mode());
        AlertDialog question = choose(R.id.helps);
        assertNotNull("nobody is asked", question);
        assertFalse("spent before the answer", settings.policy().mobileAllowed());
        answer(question, DialogInterface.BUTTON_POSITIVE);
        assertTrue(settings.policy().consent);
        assertEquals(MobilePolicy.Mode.MOBILE_HELPS, settings.policy().mode);
        assertEquals(R.id.helps, mode());
    }

    @Test
    public void aRefusalStays() {
        answer(choose(R.id.backup), DialogInterface.BUTTON_NEGATIVE);
        assertFalse(settings.policy().mobileAllowed());
        assertEquals("the screen shows what is so", R.id.wifi_only, mode());
    }

    @Test
    public void whoAgreedIsNotAskedAgain() {
        AlertDialog question = choose(R.id.helps);
        answer(question, DialogInterface.BUTTON_POSITIVE);
        assertSame("asked again", question, choose(R.id.backup));
        assertEquals(MobilePolicy.Mode.MOBILE_BACKUP, settings.policy().mode);
        assertSame("asked again", question, choose(R.id.wifi_only));
        assertEquals(MobilePolicy.Mode.WIFI_ONLY, settings.policy().mode);
    }

    @Test
    public void theLimitIsKept() {
        EditText monthly = (EditText) screen.findViewById(R.id.monthly);
        monthly.setText("2000");
        assertEquals(2_000_000_000L, settings.policy().monthlyBytes);
        monthly.setText("");
        assertEquals(0, settings.policy().monthlyBytes);
    }

    @Test
    public void startsAndStops() {
        Button toggle = (Button) screen.findViewById(R.id.toggle);
        assertEquals(screen.getString(R.string.start), toggle.getText().toString());
        assertEquals(screen.getString(R.string.stopped), ((TextView) screen.findViewById(R.id.state)).getText().toString());
        toggle.performClick();
        Intent started = shadowOf(screen.getApplication()).getNextStartedService();
        assertEquals(ProxyService.class.getName(), started.getComponent().getClassName());
        assertTrue(settings.run());
        assertEquals(screen.getString(R.string.stop), toggle.getText().toString());
        toggle.performClick();
        assertNotNull("not stopped", shadowOf(screen.getApplication()).getNextStoppedService());
        assertFalse(settings.run());
    }

    @Test
    public void startsWithThePhoneOnlyIfWanted() {
        Intent boot = new Intent(Intent.ACTION_BOOT_COMPLETED);
        new BootReceiver().onReceive(RuntimeEnvironment.getApplication(), boot);
        assertNull(shadowOf(RuntimeEnvironment.getApplication()).getNextStartedService());
        settings.setOnBoot(true);
        new BootReceiver().onReceive(RuntimeEnvironment.getApplication(), new Intent("something.else"));
        assertNull(shadowOf(RuntimeEnvironment.getApplication()).getNextStartedService());
        new BootReceiver().onReceive(RuntimeEnvironment.getApplication(), boot);
        assertNotNull(shadowOf(RuntimeEnvironment.getApplication()).getNextStartedService());
    }
}
