package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.app.Notification;
import android.app.NotificationManager;
import android.app.job.JobInfo;
import android.app.job.JobParameters;
import android.app.job.JobScheduler;
import android.content.Context;
import android.content.Intent;
import android.os.BatteryManager;
import android.os.Build;
import android.os.Looper;
import io.github.tributary.core.BatteryMeter;
import io.github.tributary.core.DownloadState;
import io.github.tributary.core.FakeFetcher;
import io.github.tributary.core.Failure;
import io.github.tributary.core.Fetcher;
import io.github.tributary.core.FolderFiles;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.Target;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadow.api.Shadow;
import org.robolectric.util.ReflectionHelpers;

/** Downloads, from their start to their end. */
@RunWith(RobolectricTestRunner.class)
public class DownloadsTest {
    private FolderFiles files;

    /** Downloads from a server of the test, into its folder. */
    private final class Local extends Downloads {
        private int held;

        Local() {
            super(app);
            processes.add(this);
            listen(new DownloadNotifications(app));
        }

        @Override
        Fetcher fetcher() {
            return daemon;
        }

        @Override
        void hold() {
            held++;
        }

        @Override
        long tailMillis() {
            return BatteryMeter.MOBILE_TAIL_MILLIS;
        }

        @Override
        Target.Files files() {
            return files;
        }
    }

    @Rule public final EndsDownloads ends = new EndsDownloads();
    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private final Application app = RuntimeEnvironment.getApplication();
    private final FakeFetcher daemon = new FakeFetcher();
    private final List<Local> processes = new ArrayList<Local>();
    private Local downloads;

    @Before
    public void start() {
        files = new FolderFiles(folder.getRoot());
        downloads = new Local();
    }

    @After
    public void end() {
        for (Local process : processes) {
            process.pauseAll();
        }
    }

    /** Presses a button of the notification. */
    private void press(String action) {
        Intent button = new Intent(app, DownloadReceiver.class).setAction("io.github.tributary." + action).putExtra("id", 101);
        DownloadReceiver.receive(app, downloads, button);
    }

    private DownloadState state() {
        return downloads.get(101).state();
    }

    private Notification shown() {
        return shown(101);
    }

    private Notification shown(int id) {
        return shadowOf((NotificationManager) app.getSystemService(Context.NOTIFICATION_SERVICE)).getNotification(id);
    }

    private String text() {
        return text(101);
    }

    private String text(int id) {
        return shown(id) == null ? "nothing" : shown(id).extras.getCharSequence(Notification.EXTRA_TEXT).toString();
    }

    private interface Condition {
        boolean met();
    }

    private void until(String what, Condition c) throws InterruptedException {
        for (int i = 0; i < 6000; i++) {
            shadowOf(Looper.getMainLooper()).idle();
            if (c.met()) {
                return;
            }
            Thread.sleep(10);
        }
        throw new AssertionError("in vain: " + what + "; shown: " + text());
    }

    private void halfIsThere() throws InterruptedException {
        daemon.half = true;
        downloads.add("https://example.com/slow.bin");
        until("half is there", () -> state().bytes == 5);
    }

    private void isWhole(String name) throws IOException {
        assertEquals(FakeFetcher.CONTENT, new String(Files.readAllBytes(new File(files.dir, name).toPath()), "UTF-8"));
    }

    @Test
    public void downloads() throws Exception {
        downloads.add("https://example.com/a/whole.bin?x=1");
        assertEquals("the proxy is not there", 1, downloads.held);
        assertTrue(downloads.active());
        until("it is done", () -> text().contains("complete"));
        isWhole("whole.bin");
        assertEquals("not given to the user", "c.zip", files.finished);
        assertFalse(downloads.active());
    }

    @Test
    public void failuresAreShown() throws Exception {
        daemon.failure = new Fetcher.Failed(new Failure("not_found", "example.com", 404, "gone"), false);
        downloads.add("https://example.com/missing.bin");
        until("the failure is shown", () -> text().contains("example.com does not have the file"));
        assertEquals("", files.finished);
        assertEquals("try again, or give up", 2, shown().actions.length);
    }

    @Test
    public void pausesAndGoesOn() throws Exception {
        halfIsThere();
        press("PAUSE");
        until("it is paused", () -> shown().actions.length == 2 && (shown().flags & Notification.FLAG_ONGOING_EVENT) == 0);
        daemon.half = false;
        press("RESUME");
        until("it is done", () -> text().contains("complete"));
        isWhole("slow.bin");
        assertEquals(Arrays.asList(0L, 5L), daemon.asked);
    }

    @Test
    public void anotherProcessGoesOn() throws Exception {
        halfIsThere();
        Local killed = downloads;
        downloads = new Local();
        assertEquals(DownloadState.Phase.LATER, state().phase);
        press("PAUSE");
        assertEquals("the buttons of the process before stay", "Resume", shown().actions[0].title.toString());
        daemon.half = false;
        press("RESUME");
        until("it is done", () -> state().phase == DownloadState.Phase.DONE);
        isWhole("slow.bin");
        killed.pauseAll();
        downloads.remove(downloads.get(101));
        isWhole("slow.bin");
        assertTrue(downloads.all().isEmpty());
    }

    @Test
    public void whatAKilledProcessShowedIsPutRight() throws Exception {
        halfIsThere();
        NotificationManager manager = (NotificationManager) app.getSystemService(Context.NOTIFICATION_SERVICE);
        manager.notify(150, shown()); // of a removed download
        assertTrue((shown().flags & Notification.FLAG_ONGOING_EVENT) != 0);
        Local killed = downloads;
        downloads = new Local();
        new DownloadNotifications(app).mend(downloads);
        assertEquals("it seems to run", 0, shown().flags & Notification.FLAG_ONGOING_EVENT);
        assertNull("it stays for ever", shadowOf(manager).getNotification(150));
        killed.pauseAll();
    }

    @Test
    public void aProcessThatBeginsPutsThemRight() {
        NotificationManager manager = (NotificationManager) app.getSystemService(Context.NOTIFICATION_SERVICE);
        manager.notify(150, new Notification.Builder(app, "x").setSmallIcon(android.R.drawable.ic_media_play).build()); // of a removed download
        ReflectionHelpers.setField(app, "downloads", null); // as in a new process
        App.downloads(app);
        assertNull("it stays for ever", shadowOf(manager).getNotification(150));
    }

    @Test
    public void goesOnWhenThereAreNetworks() throws Exception {
        halfIsThere();
        Local killed = downloads;
        downloads = new Local();
        daemon.half = false;
        downloads.online();
        until("it is done", () -> text().contains("complete"));
        isWhole("slow.bin");
        assertEquals("the proxy is not there", 1, downloads.held);
        killed.pauseAll();
    }

    @Test
    public void goesOnWhenItHadToStopForAMoment() throws Exception {
        halfIsThere();
        daemon.half = false;
        downloads.suspendAll();
        downloads.online(); // its thread may have ended without anybody hearing of it
        until("it is done", () -> text().contains("complete"));
        isWhole("slow.bin");
        daemon.half = true;
        downloads.add("https://example.com/slow.bin");
        until("half is there", () -> downloads.get(102).state().bytes == 5);
        downloads.suspendAll();
        downloads.online();
        downloads.suspendAll();
        until("it stops", () -> !downloads.active());
        assertEquals(DownloadState.Phase.LATER, phase(102));
    }

    @Test
    public void whatTheUserPausedStaysSo() throws Exception {
        halfIsThere();
        Local killed = downloads;
        downloads = new Local();
        press("PAUSE");
        downloads.online();
        assertEquals(DownloadState.Phase.PAUSED, state().phase);
        assertFalse(downloads.left());
        killed.pauseAll();
    }

    /** A job of the system's, for the downloads of the test. */
    public static class Job extends ResumeJob {
        private static Downloads local;
        private final List<Boolean> ends = new ArrayList<Boolean>();
        private int shown;

        @Override
        Downloads all() {
            return local;
        }

        @Override
        void finished(JobParameters job, boolean again) {
            ends.add(again);
        }

        @Override
        void show(JobParameters job, Notification n) {
            shown++;
        }
    }

    private static JobParameters parameters() {
        JobParameters p = Shadow.newInstanceOf(JobParameters.class);
        if (Build.VERSION.SDK_INT >= 34) {
            ReflectionHelpers.setField(p, "mIsUserInitiated", true);
        }
        return p;
    }

    @Test
    public void aJobGoesOn() throws Exception {
        halfIsThere();
        Local killed = downloads;
        downloads = new Local();
        Job.local = downloads;
        Job job = Robolectric.buildService(Job.class).create().get();
        assertTrue(job.onStartJob(parameters()));
        assertEquals("nobody keeps the service", 1, shadowOf(app).getBoundServiceConnections().size());
        assertEquals("the system ends who shows nothing", Build.VERSION.SDK_INT >= 34 ? 1 : 0, job.shown);
        until("half is there", () -> daemon.asked.size() == 2);
        assertTrue("it ends too soon", job.ends.isEmpty());
        assertTrue("it does not come again", job.onStopJob(parameters()));
        downloads.suspendAll(); // as the service does when nothing binds it
        until("it is interrupted", () -> state().phase == DownloadState.Phase.LATER);
        daemon.half = false;
        assertTrue(job.onStartJob(parameters()));
        until("it is done", () -> state().phase == DownloadState.Phase.DONE);
        assertEquals("it runs for nothing", Arrays.asList(false), job.ends);
        assertFalse("there is nothing to do", job.onStartJob(parameters()));
        killed.pauseAll();
    }

    private JobInfo planned() {
        return ((JobScheduler) app.getSystemService(Context.JOB_SCHEDULER_SERVICE)).getPendingJob(Resumption.JOB);
    }

    @Test
    @SuppressWarnings("deprecation") // the network's type: the newer way exists from Android 9 on
    public void aJobIsPlannedWhileSomethingIsLeft() throws Exception {
        Resumption resumption = new Resumption(app, downloads);
        assertNull(planned());
        halfIsThere();
        assertTrue("a restart ends it", planned().isPersisted());
        assertEquals("it may cost money", JobInfo.NETWORK_TYPE_UNMETERED, planned().getNetworkType());
        assertTrue("ends after some minutes", Build.VERSION.SDK_INT < 34 || planned().isUserInitiated());
        Settings settings = new Settings(app);
        settings.setConsent(true);
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals("it waits for Wi-Fi", JobInfo.NETWORK_TYPE_ANY, planned().getNetworkType());
        press("PAUSE");
        until("it is paused", () -> !downloads.active());
        assertNull("it wakes the phone for nothing", planned());
        assertNotNull(resumption); // the settings hold listeners weakly
    }

    @Test
    @SuppressWarnings("deprecation") // the system sends such
    public void theBatteryIsMetered() throws Exception {
        BatteryManager battery = (BatteryManager) app.getSystemService(Context.BATTERY_SERVICE);
        shadowOf(battery).setLongProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW, -360_000);
        shadowOf(battery).setLongProperty(BatteryManager.BATTERY_PROPERTY_CHARGE_COUNTER, 4_000_000);
        Intent level = new Intent(Intent.ACTION_BATTERY_CHANGED);
        level.putExtra(BatteryManager.EXTRA_LEVEL, 80).putExtra(BatteryManager.EXTRA_SCALE, 100).putExtra(BatteryManager.EXTRA_VOLTAGE, 4000);
        app.sendStickyBroadcast(level);
        halfIsThere();
        for (int i = 0; i < 100; i++) {
            shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        }
        press("PAUSE");
        until("it is paused", () -> !downloads.active());
        daemon.half = false;
        press("RESUME");
        until("it is done", () -> text().contains("complete"));
        double before = downloads.get(101).used().joules;
        assertEquals("100 s at 360 mA and 4 V", 144, before, 14);
        assertTrue("saved too soon", Texts.download(app, new Local().get(101)).contains("was closed meanwhile"));
        for (int i = 0; i < 30; i++) { // the radio stays awake; later use belongs to something else
            shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        }
        assertEquals("12 s at 1.44 W", 12 * 1.44, downloads.get(101).used().joules - before, 2 * 1.44);
        assertTrue(text(), text().matches("(?s).*: 1[67]\\d J .*, 0[.,]2\\d% of the battery.*"));
        assertEquals("the next process does not know", text(), Texts.download(app, new Local().get(101)));
    }

    /** The more accurate way, where the counter moves: phones that have one report 0 or nonsense for the current. */
    @Test
    @SuppressWarnings("deprecation") // the system sends such
    public void theChargeCounterIsMetered() throws Exception {
        BatteryManager battery = (BatteryManager) app.getSystemService(Context.BATTERY_SERVICE);
        shadowOf(battery).setLongProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW, Long.MIN_VALUE);
        Intent level = new Intent(Intent.ACTION_BATTERY_CHANGED);
        level.putExtra(BatteryManager.EXTRA_LEVEL, 80).putExtra(BatteryManager.EXTRA_SCALE, 100).putExtra(BatteryManager.EXTRA_VOLTAGE, 4000);
        app.sendStickyBroadcast(level);
        shadowOf(battery).setLongProperty(BatteryManager.BATTERY_PROPERTY_CHARGE_COUNTER, 4_000_000);
        halfIsThere();
        for (int i = 1; i <= 100; i++) {
            shadowOf(battery).setLongProperty(BatteryManager.BATTERY_PROPERTY_CHARGE_COUNTER, 4_000_000 - 100 * i);
            shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        }
        press("PAUSE");
        until("it is paused", () -> !downloads.active());
        daemon.half = false;
        press("RESUME");
        until("it is done", () -> text().contains("complete"));
        assertEquals("100 s at 100 µAh and 4 V", 144, downloads.get(101).used().joules, 4);
        assertTrue(text(), text().matches("(?s).*: 14\\d J .*, 0[.,]20% of the battery.*"));
    }

    @Test
    @SuppressWarnings("deprecation") // the system sends such
    public void onAChargerNothingIsKnown() throws Exception {
        Intent level = new Intent(Intent.ACTION_BATTERY_CHANGED);
        app.sendStickyBroadcast(level.putExtra(BatteryManager.EXTRA_PLUGGED, BatteryManager.BATTERY_PLUGGED_USB));
        halfIsThere();
        shadowOf(Looper.getMainLooper()).idleFor(2, TimeUnit.SECONDS);
        daemon.half = false;
        press("PAUSE");
        until("it is paused", () -> !downloads.active());
        press("RESUME");
        until("it is done", () -> text().contains("complete"));
        assertTrue(text(), text().contains("unknown, the phone was charging"));
        for (int i = 0; i < 30; i++) {
            shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        }
        assertEquals("the next process does not know", text(), Texts.download(app, new Local().get(101)));
    }

    @Test
    public void whatCannotBeGoneOnWithSaysSo() throws Exception {
        daemon.validator = "";
        halfIsThere();
        press("PAUSE");
        until("it is said", () -> text().contains("start over"));
    }

    private int count(DownloadState.Phase phase) {
        int n = 0;
        for (Downloads.Entry e : downloads.all()) {
            n += e.state().phase == phase ? 1 : 0;
        }
        return n;
    }

    private DownloadState.Phase phase(int id) {
        return downloads.get(id).state().phase;
    }

    @Test
    public void onlySoManyRunAtOnce() throws Exception {
        daemon.half = true;
        for (int i = 1; i <= 6; i++) {
            downloads.add("https://example.com/" + i + ".bin");
        }
        until("three run", () -> daemon.asked.size() == 3);
        assertEquals(3, count(DownloadState.Phase.QUEUED));
        assertEquals(DownloadState.Phase.QUEUED, phase(104));
        assertEquals("it does nothing", "nothing", text(104));
        assertTrue("nobody goes on with them", downloads.left() && downloads.leftForAll());
        assertTrue(Texts.download(app, downloads.get(104)), Texts.download(app, downloads.get(104)).contains("starts when another download ends"));
        downloads.pause(downloads.get(104));
        assertEquals(DownloadState.Phase.PAUSED, phase(104));
        downloads.resume(downloads.get(104));
        assertEquals("it pushes in", DownloadState.Phase.QUEUED, phase(104));
        downloads.online();
        assertEquals(3, daemon.asked.size());
        downloads.pause(downloads.get(102));
        until("the next one begins", () -> daemon.asked.size() == 4);
        assertEquals(DownloadState.Phase.RUNNING, phase(104));
        downloads.remove(downloads.get(103));
        until("the next one begins", () -> daemon.asked.size() == 5);
        assertEquals(1, count(DownloadState.Phase.QUEUED));
        downloads.suspendAll();
        until("they stop", () -> !downloads.active());
        assertEquals("it begins while the service ends", 5, daemon.asked.size());
        assertEquals(DownloadState.Phase.QUEUED, phase(106));
        downloads = new Local();
        daemon.half = false;
        downloads.online();
        until("all are done", () -> count(DownloadState.Phase.DONE) == 4);
        assertEquals(DownloadState.Phase.PAUSED, phase(102));
    }

    @Test
    public void onlyTheEndIsHeard() throws Exception {
        NotificationManager manager = (NotificationManager) app.getSystemService(Context.NOTIFICATION_SERVICE);
        assertEquals(NotificationManager.IMPORTANCE_LOW, manager.getNotificationChannel("downloads").getImportance());
        assertEquals(NotificationManager.IMPORTANCE_DEFAULT, manager.getNotificationChannel("ended").getImportance());
        halfIsThere();
        assertEquals("downloads", shown().getChannelId());
        press("PAUSE");
        until("it is paused", () -> !downloads.active());
        assertEquals("downloads", shown().getChannelId());
        daemon.half = false;
        press("RESUME");
        until("it is done", () -> text().contains("complete"));
        assertEquals("ended", shown().getChannelId());
        assertTrue("it stays after a tap", (shown().flags & Notification.FLAG_AUTO_CANCEL) != 0);
        manager.cancel(101);
        shadowOf(Looper.getMainLooper()).idleFor(5, TimeUnit.SECONDS);
        manager.cancel(101);
        downloads.show(downloads.get(101)); // the radios rest
        assertNull("it comes back", shown());
        daemon.failure = new Fetcher.Failed(new Failure("checksum", "example.com", 0, ""), false);
        downloads.add("https://example.com/wrong.bin");
        until("it failed", () -> phase(102) == DownloadState.Phase.FAILED);
        Notification failed = shown(102);
        assertEquals("ended", failed.getChannelId());
        assertTrue(failed.extras.getCharSequence(Notification.EXTRA_TEXT).toString().contains("from example.com does not have the given checksum"));
    }

    @Test
    public void whatIsGivenUpIsDeleted() throws Exception {
        halfIsThere();
        downloads.remove(downloads.get(101));
        until("it is deleted", () -> !new File(files.dir, "slow.bin").exists());
        assertNull("it is still shown", shown());
    }
}
