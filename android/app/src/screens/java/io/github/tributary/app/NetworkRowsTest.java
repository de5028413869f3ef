package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.AlertDialog;
import android.content.Context;
import android.content.DialogInterface;
import android.content.Intent;
import android.net.NetworkCapabilities;
import android.os.Build;
import android.os.Looper;
import android.os.PowerManager;
import android.provider.Settings;
import android.telephony.TelephonyManager;
import android.view.View;
import android.view.ViewGroup;
import android.widget.CheckBox;
import android.widget.TextView;
import io.github.tributary.R;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowAlertDialog;

/** The rows of the networks: their texts, and the action of the button. */
@RunWith(RobolectricTestRunner.class)
public class NetworkRowsTest {
    private Scene scene;
    private MainActivity screen;
    private TelephonyManager phone;

    @Before
    public void begin() {
        scene = new Scene();
        scene.starts();
        scene.wifi();
        phone = (TelephonyManager) scene.context.getSystemService(Context.TELEPHONY_SERVICE);
        screen = Robolectric.buildActivity(MainActivity.class).setup().get();
    }

    @After
    public void end() {
        scene.close();
    }

    private String row(int i, int id) {
        shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        return ((TextView) rows().getChildAt(i).findViewById(id)).getText().toString();
    }

    private ViewGroup rows() {
        return (ViewGroup) screen.findViewById(R.id.links);
    }

    private Intent tapped(int i) {
        View button = rows().getChildAt(i).findViewById(R.id.mend);
        assertEquals(View.VISIBLE, button.getVisibility());
        button.performClick();
        return shadowOf(screen).getNextStartedActivity();
    }

    private static String internet() {
        return Build.VERSION.SDK_INT >= 29 ? Settings.Panel.ACTION_INTERNET_CONNECTIVITY : Settings.ACTION_WIRELESS_SETTINGS;
    }

    @Test
    public void mobileDataIsOfferedWhereItWouldHelp() {
        assertEquals(screen.getString(R.string.use_not_wanted), row(1, R.id.use));
        rows().getChildAt(1).findViewById(R.id.mend).performClick();
        AlertDialog question = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        assertFalse("spent before the answer", scene.settings.policy().mobileAllowed());
        question.getButton(DialogInterface.BUTTON_POSITIVE).performClick();
        assertEquals(screen.getString(R.string.mobile_ready), row(1, R.id.use));
        assertTrue(scene.settings.policy().mobileAllowed());
    }

    @Test
    public void whyMobileDataIsNotThere() {
        scene.mobileAllowed();
        shadowOf(phone).setDataEnabled(false);
        assertEquals(screen.getString(R.string.mobile_off), row(1, R.id.use));
        assertEquals(internet(), tapped(1).getAction());
        Settings.Global.putInt(screen.getContentResolver(), Settings.Global.AIRPLANE_MODE_ON, 1);
        assertEquals(screen.getString(R.string.mobile_airplane), row(1, R.id.use));
        Settings.Global.putInt(screen.getContentResolver(), Settings.Global.AIRPLANE_MODE_ON, 0);
        shadowOf(phone).setSimState(TelephonyManager.SIM_STATE_ABSENT);
        assertEquals(screen.getString(R.string.mobile_no_sim), row(1, R.id.use));
        assertEquals("nothing can be done by a tap", View.GONE, rows().getChildAt(1).findViewById(R.id.mend).getVisibility());
    }

    @Test
    public void batterySaverIsAReasonWithARemedy() {
        scene.mobileAllowed();
        shadowOf((PowerManager) scene.context.getSystemService(Context.POWER_SERVICE)).setIsPowerSaveMode(true);
        scene.context.sendBroadcast(new Intent(PowerManager.ACTION_POWER_SAVE_MODE_CHANGED));
        assertEquals("it is not up", screen.getString(R.string.use_battery_saver), row(1, R.id.use));
        scene.mobile(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        assertEquals("it is up", screen.getString(R.string.use_battery_saver), row(1, R.id.use));
        rows().getChildAt(1).findViewById(R.id.mend).performClick();
        assertEquals(screen.getString(R.string.use_offered), row(1, R.id.use));
        assertTrue(scene.settings.inBatterySaver());
        assertTrue("the screen shows what is so", ((CheckBox) screen.findViewById(R.id.in_battery_saver)).isChecked());
    }

    @Test
    public void mobileDataThatDoesNotCome() {
        scene.mobileAllowed();
        scene.wanted();
        assertEquals(screen.getString(R.string.mobile_coming), row(1, R.id.use));
        shadowOf(Looper.getMainLooper()).idleFor(15, TimeUnit.SECONDS);
        assertEquals(screen.getString(R.string.mobile_not_coming), row(1, R.id.use));
        assertEquals(internet(), tapped(1).getAction());
        scene.mobile(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        assertEquals("it has come", screen.getString(R.string.use_offered), row(1, R.id.use));
        assertEquals(2, rows().getChildCount());
    }

    @Test
    @Config(sdk = {29, 31, 34, 35})
    public void aBlockedNetworkLeadsToTheAppsSettings() {
        scene.mobileAllowed();
        scene.mobile(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        scene.blockMobile();
        assertEquals(screen.getString(R.string.use_blocked), row(1, R.id.use));
        Intent settings = tapped(1);
        assertEquals(Settings.ACTION_APPLICATION_DETAILS_SETTINGS, settings.getAction());
        assertEquals("package:" + screen.getPackageName(), settings.getDataString());
    }

    @Test
    public void ratesAreThoseOfNow() {
        scene.mobileAllowed();
        scene.mobile(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        scene.report(4_000_000, 6_000_000, 2_000_000, 2_000_000);
        assertEquals("4.00 MB/s", row(0, R.id.rate));
        assertEquals("2.00 MB/s", row(1, R.id.rate));
        assertTrue(row(0, R.id.use), row(0, R.id.use).contains("6.00 MB so far (75%)"));
        shadowOf(Looper.getMainLooper()).idleFor(5, TimeUnit.SECONDS); // the daemon is silent: nothing moves
        assertEquals("", row(0, R.id.rate));
        assertEquals(screen.getString(R.string.graph_idle), screen.findViewById(R.id.graph).getContentDescription());
    }

    @Test
    public void aDownloadSaysHowFastAndHowLong() throws Exception {
        scene.downloads(false);
        screen = Robolectric.buildActivity(MainActivity.class).setup().get();
        View row = ((ViewGroup) screen.findViewById(R.id.downloads)).getChildAt(0);
        String text = ((TextView) row.findViewById(R.id.progress_text)).getText().toString();
        assertTrue(text, text.matches("716 MB of 3.99 GB, [78]\\.\\d\\d MB/s, \\d min left"));
        assertEquals("Wi-Fi 59%, Mobile data 41%", ((TextView) row.findViewById(R.id.shares)).getText().toString());
    }
}
