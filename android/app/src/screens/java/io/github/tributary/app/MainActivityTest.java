package io.github.tributary.app;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.app.Activity;
import android.app.ActivityManager;
import android.app.AlertDialog;
import android.app.ApplicationExitInfo;
import android.content.Context;
import android.content.DialogInterface;
import android.content.Intent;
import android.content.ComponentName;
import android.content.IntentFilter;
import android.content.pm.ActivityInfo;
import android.content.pm.ComponentInfo;
import android.content.pm.PackageInfo;
import android.content.pm.PackageManager;
import android.content.pm.ServiceInfo;
import android.os.Build;
import android.os.Looper;
import android.view.View;
import android.view.inputmethod.EditorInfo;
import android.widget.Button;
import android.widget.CheckBox;
import android.widget.EditText;
import android.widget.LinearLayout;
import android.widget.ListView;
import android.widget.RadioGroup;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.Fetcher;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.Reach;
import io.github.tributary.core.Shares;
import io.github.tributary.core.Version;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowActivityManager;
import org.robolectric.shadows.ShadowAlertDialog;
import org.robolectric.shadows.ShadowPackageManager;
import org.robolectric.shadows.ShadowVpnService;

/** The main screen, and what starts with the phone. */
@RunWith(RobolectricTestRunner.class)
public class MainActivityTest {
    @Rule public final EndsDownloads ends = new EndsDownloads();

    private ActivityController<MainActivity> controller;
    private MainActivity screen;
    private Settings settings;

    @Before
    public void open() {
        shadowOf(RuntimeEnvironment.getApplication()).grantPermissions(Manifest.permission.WRITE_EXTERNAL_STORAGE); // else downloads wait
        settings = new Settings(RuntimeEnvironment.getApplication());
        settings.setWelcomed();
        controller = Robolectric.buildActivity(MainActivity.class).setup();
        screen = controller.get();
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

    private static AlertDialog question() {
        AlertDialog d = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        return d != null && d.isShowing() ? d : null;
    }

    private void asksAboutMobileData(String when) {
        assertNotNull(when + ": nobody is asked", question());
        assertEquals(screen.getString(R.string.consent), shadowOf(question()).getMessage().toString());
        assertFalse(when + ": spent before the answer", settings.policy().mobileAllowed());
    }

    private void anotherScreen(Intent intent) {
        controller.pause().stop().destroy();
        controller = Robolectric.buildActivity(MainActivity.class, intent).setup();
        screen = controller.get();
    }

    /** The case in which the first run was skipped. */
    @Test
    public void mobileDataIsAskedAboutWhenItIsNeeded() {
        screen.findViewById(R.id.toggle).performClick();
        assertNull("a tablet without mobile data", question());
        shadowOf(screen.getPackageManager()).setSystemFeature(PackageManager.FEATURE_TELEPHONY, true);
        Intent opened = new Intent(screen, MainActivity.class);
        anotherScreen(opened);
        assertNull("nothing could use it yet", question());
        screen.findViewById(R.id.toggle).performClick();
        assertTrue("it waits for the answer", settings.run());
        asksAboutMobileData("Start");
        question().cancel(); // like "back"
        screen.findViewById(R.id.toggle).performClick();
        assertNull("the same screen asks again", question());
        settings.setRun(false);

        anotherScreen(opened);
        ((EditText) screen.findViewById(R.id.url)).setText("https://example.com/a.iso");
        screen.findViewById(R.id.add).performClick();
        asksAboutMobileData("a download");
        question().cancel();

        anotherScreen(MainActivity.starting(screen)); // like the tile
        asksAboutMobileData("the tile");
        answer(question(), DialogInterface.BUTTON_NEGATIVE);
        anotherScreen(opened);
        screen.findViewById(R.id.toggle).performClick();
        assertNull("who refused is asked again", question());
        assertEquals(R.id.wifi_only, mode());
    }

    @Test
    public void batterySaverCanBeIgnored() {
        CheckBox box = (CheckBox) screen.findViewById(R.id.in_battery_saver);
        assertFalse(box.isChecked());
        box.performClick();
        assertTrue(settings.inBatterySaver());
        anotherScreen(new Intent(screen, MainActivity.class));
        box = (CheckBox) screen.findViewById(R.id.in_battery_saver);
        assertTrue("the screen shows what is so", box.isChecked());
        box.performClick();
        assertFalse(settings.inBatterySaver());
    }

    /** Anybody who has an address can download over mobile data: the user can revoke it. */
    @Test
    public void localAddressesCanBeTakenBack() {
        View button = screen.findViewById(R.id.new_address);
        assertEquals("nobody has one", View.GONE, button.getVisibility());
        String token = settings.gatewayToken();
        settings.setAddressGiven();
        controller.pause().resume();
        assertEquals(View.VISIBLE, button.getVisibility());
        button.performClick();
        answer(question(), DialogInterface.BUTTON_NEGATIVE);
        assertEquals("changed without an answer", token, settings.gatewayToken());
        button.performClick();
        answer(question(), DialogInterface.BUTTON_POSITIVE);
        assertNotEquals(token, settings.gatewayToken());
        assertTrue(settings.gatewayToken().length() >= 22);
        assertEquals("nobody has the new one", View.GONE, button.getVisibility());
    }

    @Test
    public void roamingIsAskedAboutFirst() {
        CheckBox roaming = (CheckBox) screen.findViewById(R.id.roaming);
        assertFalse(roaming.isChecked());
        roaming.performClick();
        AlertDialog question = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        assertFalse("spent before the answer", settings.policy().roaming);
        answer(question, DialogInterface.BUTTON_NEGATIVE);
        assertFalse("the screen shows what is so", settings.policy().roaming || roaming.isChecked());
        roaming.performClick();
        answer((AlertDialog) ShadowAlertDialog.getLatestDialog(), DialogInterface.BUTTON_POSITIVE);
        assertTrue(settings.policy().roaming && roaming.isChecked());
        roaming.performClick();
        assertFalse(settings.policy().roaming);
    }

    @Test
    public void theLimitIsKept() {
        EditText monthly = (EditText) screen.findViewById(R.id.monthly);
        monthly.setText("2000");
        ((EditText) screen.findViewById(R.id.daily)).setText("100");
        EditText first = (EditText) screen.findViewById(R.id.first_day);
        first.setText("15");
        assertEquals("half a number is another limit", 0, settings.policy().limits.monthlyBytes);
        monthly.onEditorAction(EditorInfo.IME_ACTION_DONE);
        assertEquals(2_000_000_000L, settings.policy().limits.monthlyBytes);
        assertEquals(100_000_000L, settings.policy().limits.dailyBytes);
        assertEquals(15, settings.policy().limits.firstDay);
        monthly.setText("");
        first.setText("32");
        controller.pause();
        assertEquals(0, settings.policy().limits.monthlyBytes);
        assertEquals("there is no such day", 15, settings.policy().limits.firstDay);
        assertEquals("15", first.getText().toString());
    }

    @Test
    public void startsAndStops() {
        Button toggle = (Button) screen.findViewById(R.id.toggle);
        assertEquals(screen.getString(R.string.start), toggle.getText().toString());
        assertEquals(screen.getString(R.string.stopped), text(R.id.state));
        toggle.performClick();
        Intent started = started();
        assertEquals(ProxyService.class.getName(), started.getComponent().getClassName());
        assertTrue(settings.run());
        ServiceController<ProxyServiceTest.Shell> service = Robolectric.buildService(ProxyServiceTest.Shell.class, started).create();
        service.startCommand(0, 1);
        shadowOf(Looper.getMainLooper()).idleFor(2, TimeUnit.SECONDS);
        assertEquals(screen.getString(R.string.stop), toggle.getText().toString());
        toggle.performClick();
        assertNotNull("not stopped", shadowOf(screen.getApplication()).getNextStoppedService());
        assertFalse(settings.run());
        service.destroy();
        shadowOf(Looper.getMainLooper()).idleFor(2, TimeUnit.SECONDS);
        assertEquals(screen.getString(R.string.start), toggle.getText().toString());
    }

    @Test
    public void whatTheSystemEndedStartsAgain() {
        controller.pause();
        settings.setRun(true);
        assertNull(started());
        controller.resume();
        assertNotNull("the user is told that it runs", started());
    }

    @Test
    public void theTileMayHaveItStarted() {
        assertNull(started());
        controller.pause();
        controller.newIntent(MainActivity.starting(screen)).resume();
        assertNotNull(started());
        settings.setRun(false);
        controller.pause().resume();
        assertNull("asked once", started());
    }

    @Test
    public void otherAppsCannotHaveItStarted() {
        controller.pause();
        controller.newIntent(new Intent(screen, MainActivity.class).setAction("io.github.tributary.START")).resume();
        assertNull("it started", started());
        assertFalse(settings.run());
    }

    /** What other apps can start, and which parts only the system can start. */
    @Test
    public void littleIsOpenToOtherApps() throws Exception {
        int all = PackageManager.GET_ACTIVITIES | PackageManager.GET_SERVICES | PackageManager.GET_RECEIVERS | PackageManager.GET_PROVIDERS;
        PackageInfo info = screen.getPackageManager().getPackageInfo(screen.getPackageName(), all);
        List<ComponentInfo> components = new ArrayList<ComponentInfo>();
        for (ComponentInfo[] some : new ComponentInfo[][] {info.activities, info.services, info.receivers, info.providers}) {
            components.addAll(some == null ? Arrays.<ComponentInfo>asList() : Arrays.asList(some));
        }
        assertTrue("the service is missing", names(components).contains("ProxyService"));
        components.removeIf(c -> !c.exported);
        assertEquals(new HashSet<String>(Arrays.asList("MainActivity", "ShareActivity", "PairActivity", "ProxyTile")), names(components));
        for (ServiceInfo s : info.services) {
            assertTrue(s.name, !s.exported || "android.permission.BIND_QUICK_SETTINGS_TILE".equals(s.permission));
        }
        assertFalse("the tile's way to start it", screen.getPackageManager().getActivityInfo(MainActivity.starting(screen).getComponent(), 0).exported);
    }

    private static Set<String> names(List<ComponentInfo> components) {
        Set<String> names = new HashSet<String>();
        for (ComponentInfo c : components) {
            names.add(c.name.replaceFirst("^io\\.github\\.tributary\\.app\\.", ""));
        }
        return names;
    }

    private String text(int id) {
        return ((TextView) screen.findViewById(id)).getText().toString();
    }

    private int reach() {
        return ((RadioGroup) screen.findViewById(R.id.reach)).getCheckedRadioButtonId();
    }

    private void reach(int id) {
        screen.findViewById(id).performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    @Test
    public void theSettingTakesAPermission() {
        assertEquals(R.id.reach_by_hand, reach());
        assertTrue(text(R.id.reach_how), text(R.id.reach_how).contains("127.0.0.1:8080"));
        assertFalse("promises what it may not", screen.findViewById(R.id.reach_setting).isEnabled());
        String command = "adb shell pm grant io.github.tributary android.permission.WRITE_SECURE_SETTINGS";
        assertTrue(text(R.id.reach_permission), text(R.id.reach_permission).contains(command));
        shadowOf(RuntimeEnvironment.getApplication()).grantPermissions("android.permission.WRITE_SECURE_SETTINGS");
        shadowOf(Looper.getMainLooper()).idleFor(2, TimeUnit.SECONDS);
        assertTrue("the permission is not noticed", screen.findViewById(R.id.reach_setting).isEnabled());
        assertEquals(View.GONE, screen.findViewById(R.id.reach_permission).getVisibility());
        reach(R.id.reach_setting);
        assertEquals(Reach.SETTING, settings.reach());
        reach(R.id.reach_by_hand);
        assertEquals(Reach.BY_HAND, settings.reach());
    }

    @Test
    public void theSystemAsksAboutTheVpn() {
        Intent question = new Intent("the system's question");
        ShadowVpnService.setPrepareResult(question);
        reach(R.id.reach_vpn);
        assertEquals("nobody is asked", question.getAction(), shadowOf(screen).getNextStartedActivityForResult().intent.getAction());
        assertEquals("on before the answer", Reach.BY_HAND, settings.reach());
        screen.onActivityResult(1, Activity.RESULT_CANCELED, null);
        assertEquals(Reach.BY_HAND, settings.reach());
        assertEquals("the screen shows what is so", R.id.reach_by_hand, reach());
        screen.onActivityResult(1, Activity.RESULT_OK, null);
        assertEquals(Reach.VPN, settings.reach());
        assertEquals(R.id.reach_vpn, reach());
        ShadowVpnService.setPrepareResult(null);
        reach(R.id.reach_by_hand);
        reach(R.id.reach_vpn);
        assertEquals("asked again", Reach.VPN, settings.reach());
        settings.setReach(Reach.BY_HAND); // like the VPN when another one comes
        shadowOf(Looper.getMainLooper()).idleFor(2, TimeUnit.SECONDS);
        assertEquals(R.id.reach_by_hand, reach());
    }

    private void type(String url) {
        ((EditText) screen.findViewById(R.id.url)).setText(url);
        screen.findViewById(R.id.add).performClick();
    }

    @Test
    public void linksAreDownloaded() {
        type("no link at all");
        assertNull(shadowOf(screen.getApplication()).getNextStartedService());
        assertNotNull("nobody is told", ((EditText) screen.findViewById(R.id.url)).getError());
        type("example.com/a.iso");
        assertEquals("https://example.com/a.iso", App.downloads(screen).all().get(0).state().source.url);
        assertNotNull("the proxy is not there", shadowOf(screen.getApplication()).getNextStartedService());
        assertEquals("", text(R.id.url));
        type("https://example.com/b.iso https://example.com/c.iso");
        assertEquals(3, App.downloads(screen).all().size());
        type("example.com/d.iso " + "0".repeat(64));
        assertEquals("sha256:" + "0".repeat(64), App.downloads(screen).all().get(3).state().source.checksum);
        assertEquals("https://example.com/d.iso", App.downloads(screen).all().get(3).state().source.url);
    }

    private Intent started() {
        return shadowOf(screen.getApplication()).getNextStartedService();
    }

    @Test
    @Config(sdk = 26)
    public void theFirstDownloadAsksWhereTo() {
        shadowOf(screen.getApplication()).denyPermissions(Manifest.permission.WRITE_EXTERNAL_STORAGE);
        type("https://example.com/a.iso");
        assertEquals("nothing waits for the answer", 0, App.downloads(screen).all().size());
        String[] asked = shadowOf(screen).getLastRequestedPermission().requestedPermissions;
        assertArrayEquals(new String[] {Manifest.permission.WRITE_EXTERNAL_STORAGE}, asked);
        int[] denied = {PackageManager.PERMISSION_DENIED};
        screen.onRequestPermissionsResult(1, asked, denied);
        assertEquals("it downloads all the same", 1, App.downloads(screen).all().size());
        screen.onRequestPermissionsResult(1, asked, denied);
        assertEquals("the line is empty", 1, App.downloads(screen).all().size());
        shadowOf(screen.getPackageManager()).setShouldShowRequestPermissionRationale(asked[0], true);
        type("https://example.com/b.iso");
        assertEquals("once is enough", 2, App.downloads(screen).all().size());
    }

    @Test
    public void downloadsAreListed() throws InterruptedException {
        Downloads downloads = App.downloads(screen);
        LinearLayout list = (LinearLayout) screen.findViewById(R.id.downloads);
        Downloads.Entry first = downloads.add("https://example.com/first.iso");
        Downloads.Entry second = downloads.add("https://example.com/second.iso");
        assertEquals(2, list.getChildCount());
        assertEquals("Pause", ((Button) list.getChildAt(0).findViewById(R.id.step)).getText().toString());
        downloads.pauseAll();
        until(() -> !downloads.active());
        controller.pause().resume();
        assertEquals(2, list.getChildCount());
        for (Intent s = started(); s != null; s = started()) {
            assertEquals("the proxy", ProxyService.class.getName(), s.getComponent().getClassName());
        }
        View row = list.getChildAt(0);
        assertEquals("second.iso", ((TextView) row.findViewById(R.id.name)).getText().toString());
        Button step = (Button) row.findViewById(R.id.step);
        assertEquals(screen.getString(R.string.resume), step.getText().toString());
        assertEquals("for those who do not see the row", "Resume: second.iso", step.getContentDescription().toString());
        step.performClick();
        assertTrue(second.state().active());
        assertNotNull("the proxy is not there", started());
        row.findViewById(R.id.remove).performClick();
        assertEquals(1, list.getChildCount());
        assertNull(downloads.get(second.id));
        assertSame(first, downloads.get(first.id));
    }

    @Test
    public void aDownloadKeepsToWifi() throws InterruptedException {
        Downloads downloads = App.downloads(screen);
        Downloads.Entry e = downloads.add("https://example.com/a.iso");
        View row = ((LinearLayout) screen.findViewById(R.id.downloads)).getChildAt(0);
        CheckBox free = (CheckBox) row.findViewById(R.id.unmetered);
        assertEquals("nothing may cost money anyway", View.GONE, free.getVisibility());
        settings.setConsent(true);
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        controller.pause().resume();
        row = ((LinearLayout) screen.findViewById(R.id.downloads)).getChildAt(0);
        free = (CheckBox) row.findViewById(R.id.unmetered);
        assertEquals(View.VISIBLE, free.getVisibility());
        assertFalse(free.isChecked());
        assertEquals("for those who do not see the row", "Use Wi-Fi only: a.iso", free.getContentDescription().toString());
        free.performClick();
        until(() -> e.state().unmetered);
        settings.setMode(MobilePolicy.Mode.WIFI_ONLY);
        controller.pause().resume();
        row = ((LinearLayout) screen.findViewById(R.id.downloads)).getChildAt(0);
        free = (CheckBox) row.findViewById(R.id.unmetered);
        assertEquals("nobody could take it back", View.VISIBLE, free.getVisibility());
        assertTrue(free.isChecked());
        downloads.pauseAll();
        until(() -> !downloads.active());
        free.performClick();
        assertFalse("only while it runs", e.state().unmetered);
    }

    private static void until(BooleanSupplier c) throws InterruptedException {
        for (int i = 0; i < 2000 && !c.getAsBoolean(); i++) {
            Thread.sleep(10);
            shadowOf(Looper.getMainLooper()).idle();
        }
        assertTrue("in vain", c.getAsBoolean());
    }

    @Test
    public void deletingAsks() throws Exception {
        Context app = screen.getApplication();
        Version version = new Version("\"v\"", "m", 10, "p");
        DownloadState half = DownloadState.begin("https://example.com/half.iso").at(new Fetcher.Step("half.iso", version, 5, 5, Shares.NONE));
        app.getSharedPreferences("downloads", Context.MODE_PRIVATE).edit().putString("list", "[" + half.toJson().put("id", 101) + "]").commit();
        Downloads downloads = new Downloads(app);
        Downloads.Entry e = downloads.get(101);
        DownloadList list = new DownloadList(screen, downloads);
        list.remove(e);
        AlertDialog question = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        answer(question, DialogInterface.BUTTON_NEGATIVE);
        assertFalse("gone by one tap", e.removed());
        list.remove(e);
        answer((AlertDialog) ShadowAlertDialog.getLatestDialog(), DialogInterface.BUTTON_POSITIVE);
        assertTrue(e.removed());
    }

    @Test
    public void theNotificationsButtonAsks() throws Exception {
        Downloads.Entry e = App.downloads(screen).add("https://example.com/a.iso");
        App.downloads(screen).pauseAll();
        controller.pause().newIntent(shadowOf(MainActivity.removing(screen, e.id)).getSavedIntent()).resume();
        AlertDialog question = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        assertNotNull("nothing is asked", question);
        assertFalse("any app can do that", e.removed());
        answer(question, DialogInterface.BUTTON_POSITIVE);
        assertTrue(e.removed());
    }

    @Test
    @Config(qualifiers = "de-rDE")
    public void speaksTheUsersLanguage() {
        assertEquals("Starten", text(R.id.toggle));
        assertEquals("Läuft nicht.", text(R.id.state));
        assertEquals("2 Downloads", screen.getResources().getQuantityString(R.plurals.downloads_running, 2, 2));
    }

    @Test
    public void everyPermissionIsExplained() throws Exception {
        String why = screen.getString(R.string.permissions_why);
        String[][] words = {
            {"INTERNET", "Internet"},
            {"ACCESS_NETWORK_STATE", "See"},
            {"CHANGE_NETWORK_STATE", "request networks"},
            {"FOREGROUND_SERVICE", "foreground"},
            {"FOREGROUND_SERVICE_SPECIAL_USE", "foreground"},
            {"POST_NOTIFICATIONS", "notifications"},
            {"WAKE_LOCK", "awake"},
            {"WRITE_EXTERNAL_STORAGE", "Write to storage"},
            {"READ_EXTERNAL_STORAGE", "Write to storage"}, // implied by it
            {"RECEIVE_BOOT_COMPLETED", "when the phone starts"},
            {"RUN_USER_INITIATED_JOBS", "without a time limit"},
            {"WRITE_SECURE_SETTINGS", "secure settings"},
        };
        String[] asked = screen.getPackageManager().getPackageInfo(screen.getPackageName(), PackageManager.GET_PERMISSIONS).requestedPermissions;
        for (String permission : asked) {
            boolean explained = false;
            for (String[] w : words) {
                explained |= permission.equals("android.permission." + w[0]) && why.contains(w[1]);
            }
            assertTrue(permission + " is not explained", explained);
        }
        assertEquals(words.length - (Build.VERSION.SDK_INT >= 29 ? 2 : 0), asked.length); // storage: before Android 10
    }

    /** Returns what the next process reports about this one, which the system ends. */
    private String ended() {
        App app = (App) screen.getApplication();
        app.onCreate();
        controller = Robolectric.buildActivity(MainActivity.class).setup();
        screen = controller.get();
        return text(R.id.ended);
    }

    @Test
    public void theNextStartTellsOfAnEnd() {
        assertEquals("", ended());
        settings.setRun(true);
        assertEquals("it never began", "", ended());
        LastEnd.began(screen);
        String line = ended();
        assertTrue(line, line.contains("did not say why"));
        assertEquals(View.VISIBLE, screen.findViewById(R.id.ended).getVisibility());
        controller.pause().resume();
        assertEquals("told twice", View.GONE, screen.findViewById(R.id.ended).getVisibility());
        android.provider.Settings.Global.putInt(screen.getContentResolver(), android.provider.Settings.Global.BOOT_COUNT, 7);
        assertEquals("the phone was restarted", "", ended());
        LastEnd.began(screen);
        settings.setRun(false);
        assertEquals("it was stopped", "", ended());
    }

    @Test
    @Config(sdk = {31, 34, 35, 36})
    public void theSystemSaysWhyItEnded() {
        Object[][] rows = {
            {ApplicationExitInfo.REASON_LOW_MEMORY, "memory"},
            {ApplicationExitInfo.REASON_CRASH_NATIVE, "crashed"},
            {ApplicationExitInfo.REASON_USER_REQUESTED, "swept away"},
            {ApplicationExitInfo.REASON_EXCESSIVE_RESOURCE_USAGE, "battery"},
            {ApplicationExitInfo.REASON_OTHER, "did not say"},
        };
        settings.setRun(true);
        LastEnd.began(screen);
        for (Object[] row : rows) {
            ActivityManager manager = (ActivityManager) screen.getSystemService(Context.ACTIVITY_SERVICE);
            shadowOf(manager)
                    .addApplicationExitInfo(
                            ShadowActivityManager.ApplicationExitInfoBuilder.newBuilder()
                                    .setProcessName(screen.getPackageName())
                                    .setReason((Integer) row[0])
                                    .setTimestamp(System.currentTimeMillis() + 1000)
                                    .build());
            String line = ended();
            assertTrue(line, line.contains((String) row[1]));
        }
    }

    /** The system restores the state of buttons: that is not a choice of the user. */
    @Test
    public void aRestoredButtonIsNoChoice() {
        settings.setReach(Reach.VPN);
        settings.setConsent(true);
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        settings.setRoaming(true);
        screen = controller.recreate().get();
        assertEquals(R.id.reach_vpn, reach());
        settings.setReach(Reach.BY_HAND); // another VPN takes over, while the screen is away
        settings.setMode(MobilePolicy.Mode.WIFI_ONLY);
        settings.setRoaming(false);
        ShadowVpnService.setPrepareResult(new Intent("the system's question"));
        screen = controller.recreate().get();
        assertNull("asked unbidden", shadowOf(screen).getNextStartedActivityForResult());
        assertEquals(Reach.BY_HAND, settings.reach());
        assertEquals(R.id.reach_by_hand, reach());
        assertEquals(MobilePolicy.Mode.WIFI_ONLY, settings.policy().mode);
        assertEquals(R.id.wifi_only, mode());
        assertFalse(((CheckBox) screen.findViewById(R.id.roaming)).isChecked());
    }

    @Test
    @Config(sdk = {29, 31, 34, 35, 36})
    public void theUserSeesAndChoosesWhoGoesAroundTheVpn() {
        ShadowPackageManager packages = shadowOf(screen.getPackageManager());
        for (String name : new String[] {"com.sonos.acr2", "org.example.browser"}) {
            ActivityInfo main = new ActivityInfo();
            main.packageName = name;
            main.name = "Main";
            main.nonLocalizedLabel = name.substring(name.lastIndexOf('.') + 1);
            packages.addOrUpdateActivity(main);
            IntentFilter launcher = new IntentFilter(Intent.ACTION_MAIN);
            launcher.addCategory(Intent.CATEGORY_LAUNCHER);
            packages.addIntentFilterForActivity(new ComponentName(name, "Main"), launcher);
        }
        assertEquals(View.GONE, screen.findViewById(R.id.around).getVisibility());
        settings.setReach(Reach.VPN);
        shadowOf(Looper.getMainLooper()).idleFor(2, TimeUnit.SECONDS);
        assertEquals(View.VISIBLE, screen.findViewById(R.id.around).getVisibility());
        screen.findViewById(R.id.around).performClick();
        AlertDialog question = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        ListView list = question.getListView();
        assertEquals("acr2", list.getItemAtPosition(0));
        assertEquals("browser", list.getItemAtPosition(1));
        for (int i = 0; i < list.getCount(); i++) {
            list.getAdapter().getView(i, null, list); // like the screen
        }
        assertTrue("it breaks in a VPN", list.isItemChecked(0));
        assertFalse(list.isItemChecked(1));
        list.performItemClick(null, 1, 1);
        answer(question, DialogInterface.BUTTON_POSITIVE);
        assertTrue(settings.around().contains("org.example.browser") && settings.around().contains("com.sonos.acr2"));
    }

    @Test
    public void startsAgainAfterAnUpdate() {
        Intent updated = new Intent(Intent.ACTION_MY_PACKAGE_REPLACED);
        new BootReceiver().onReceive(screen, updated);
        assertNull(shadowOf(screen.getApplication()).getNextStartedService());
        settings.setRun(true);
        new BootReceiver().onReceive(screen, updated);
        assertNotNull(shadowOf(screen.getApplication()).getNextStartedService());
        new BootReceiver().onReceive(screen, new Intent(Intent.ACTION_BOOT_COMPLETED));
        assertFalse("the phone was restarted: it does not run", settings.run());
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
