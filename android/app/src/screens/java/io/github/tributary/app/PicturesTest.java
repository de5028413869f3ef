package io.github.tributary.app;

import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.app.Dialog;
import android.content.ComponentName;
import android.content.Intent;
import android.content.IntentFilter;
import android.content.pm.ActivityInfo;
import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Color;
import android.graphics.Paint;
import android.graphics.drawable.Drawable;
import android.net.NetworkCapabilities;
import android.os.Looper;
import android.view.View;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.Reach;
import java.io.File;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.GraphicsMode;
import org.robolectric.shadows.ShadowDialog;
import org.robolectric.shadows.ShadowPackageManager;

/** What the screens look like, drawn by Android's own code. On one version: others draw letters differently. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = 34)
@GraphicsMode(GraphicsMode.Mode.NATIVE)
public class PicturesTest {
    private static final String PHONE = "w360dp-h720dp-mdpi";
    private static final File PICTURES = new File("app/src/screens/pictures");
    private static final File STORE = new File("../fastlane/metadata/android/en-US/images");

    private Scene scene;

    @Before
    public void begin() {
        scene = new Scene();
    }

    @After
    public void end() {
        scene.close();
    }

    private static View open(Class<? extends Activity> screen) {
        Activity a = Robolectric.buildActivity(screen).setup().get();
        shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        a.getWindow().getDecorView().clearFocus();
        return a.getWindow().getDecorView();
    }

    private void picture(String name, View screen, Dialog dialog) throws Exception {
        Scene.idle();
        Picture.of(screen, dialog).matches(new File(PICTURES, name + ".png"));
    }

    /** Makes a picture that the store also shows. */
    private static void screenshot(String name, View screen) throws Exception {
        Scene.idle();
        Picture.of(screen, null).matches(new File(STORE, "phoneScreenshots/" + name + ".png"));
    }

    private void picture(String name, View screen) throws Exception {
        picture(name, screen, null);
    }

    private void running() throws Exception {
        scene.mobileAllowed();
        scene.starts();
        scene.wifi();
        scene.mobile(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        scene.downloadsForAMinute();
        scene.downloads(false);
    }

    private static final String DAY = "w360dp-h800dp-hdpi";
    private static final String NIGHT = "w360dp-h800dp-night-hdpi";
    private static final String ARABIC = "ar-ldrtl-w360dp-h800dp-mdpi";
    private static final String LARGE = "w360dp-h1400dp-mdpi"; // tall enough for everything that users scroll through
    private static final String LANDSCAPE = "w720dp-h360dp-land-mdpi";
    private static final String TABLET = "w1000dp-h800dp-land-mdpi";

    @Test
    @Config(qualifiers = PHONE)
    public void firstRun() throws Exception {
        picture("first-run", open(WelcomeActivity.class));
    }

    /** Returns the first run at the end of its test. */
    private View tested() throws Exception {
        scene.mobileAllowed();
        scene.starts();
        scene.wifi();
        scene.mobile(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        Scene.Running running = scene.test();
        View screen = open(WelcomeActivity.class);
        screen.findViewById(R.id.test).performClick();
        running.at(1, 0);
        scene.report(3_100_000, 4_000_000, 0, 0);
        for (int i = 1; i <= 9; i++) {
            running.at(3 * i, 2 * i - 1);
            scene.report(2_900_000 + 30_000 * i, 3_000_000 * i, 2_000_000 + 20_000 * i, 2_000_000 * i);
        }
        App.test(scene.context).stop();
        for (int i = 0; i < 1000 && App.test(scene.context).runs(); i++) {
            Thread.sleep(10);
            Scene.idle();
        }
        shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        return screen;
    }

    @Test
    @Config(qualifiers = NIGHT)
    public void firstRunTested() throws Exception {
        screenshot("2_first_run", tested());
    }

    @Test
    @Config(qualifiers = ARABIC)
    public void firstRunTestedArabic() throws Exception {
        picture("first-run-tested-arabic", tested());
    }

    @Test
    @Config(qualifiers = LARGE)
    public void firstRunTested_largeFont() throws Exception {
        RuntimeEnvironment.setFontScale(2);
        picture("first-run-tested-large-font", tested());
    }

    @Test
    @Config(qualifiers = DAY)
    public void running_light() throws Exception {
        running();
        screenshot("1_running", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = NIGHT)
    public void running_night() throws Exception {
        running();
        screenshot("3_running_night", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = ARABIC)
    public void running_arabic() throws Exception {
        running();
        picture("running-arabic", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = LANDSCAPE)
    public void running_landscape() throws Exception {
        running();
        picture("running-landscape", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = TABLET)
    public void running_tablet() throws Exception {
        running();
        picture("running-tablet", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = LARGE)
    public void running_largeFont() throws Exception {
        RuntimeEnvironment.setFontScale(2);
        running();
        picture("running-large-font", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = "de-w360dp-h6600dp-mdpi")
    public void everything_largeFont() throws Exception {
        RuntimeEnvironment.setFontScale(2);
        scene.mobileAllowed();
        scene.starts();
        scene.wifi();
        scene.mobile();
        scene.downloadsForAMinute();
        scene.downloads(true);
        picture("everything-large-font", whole());
    }

    @Test
    @Config(qualifiers = "w360dp-h1200dp-mdpi")
    public void downloads() throws Exception {
        scene.mobileAllowed();
        scene.downloads(true);
        picture("downloads", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = "w360dp-h1200dp-night-mdpi")
    public void downloads_night() throws Exception {
        scene.mobileAllowed();
        scene.downloads(true);
        picture("downloads-night", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = "ar-ldrtl-w360dp-h1200dp-mdpi")
    public void downloads_arabic() throws Exception {
        scene.mobileAllowed();
        scene.downloads(true);
        picture("downloads-arabic", open(MainActivity.class));
    }

    private View blocked() {
        scene.mobileAllowed();
        scene.starts();
        scene.wifi();
        scene.mobile(NetworkCapabilities.NET_CAPABILITY_NOT_ROAMING);
        scene.blockMobile();
        return open(MainActivity.class);
    }

    @Test
    @Config(qualifiers = PHONE)
    public void mobileDataBlocked() throws Exception {
        picture("mobile-blocked", blocked());
    }

    @Test
    @Config(qualifiers = NIGHT)
    public void mobileDataBlocked_night() throws Exception {
        picture("mobile-blocked-night", blocked());
    }

    @Test
    @Config(qualifiers = LARGE)
    public void mobileDataBlocked_largeFont() throws Exception {
        RuntimeEnvironment.setFontScale(2);
        picture("mobile-blocked-large-font", blocked());
    }

    @Test
    @Config(qualifiers = ARABIC)
    public void mobileDataBlocked_arabic() throws Exception {
        picture("mobile-blocked-arabic", blocked());
    }

    @Test
    @Config(qualifiers = PHONE)
    public void mobileDataDoesNotCome() throws Exception {
        scene.mobileAllowed();
        scene.starts();
        scene.wifi();
        scene.wanted();
        shadowOf(Looper.getMainLooper()).idleFor(20, TimeUnit.SECONDS);
        picture("mobile-not-coming", open(MainActivity.class));
    }

    @Test
    @Config(qualifiers = NIGHT)
    public void consent() throws Exception {
        View screen = open(MainActivity.class);
        screen.findViewById(R.id.helps).performClick();
        picture("consent-night", screen, ShadowDialog.getLatestDialog());
    }

    @Test
    @Config(qualifiers = PHONE)
    public void delete() throws Exception {
        scene.downloads(true);
        View screen = open(MainActivity.class);
        screen.findViewWithTag(103).findViewById(R.id.remove).performClick();
        picture("delete", screen, ShadowDialog.getLatestDialog());
    }

    private static Dialog share() {
        Intent send = new Intent(RuntimeEnvironment.getApplication(), ShareActivity.class).setAction(Intent.ACTION_SEND);
        send.setType("text/plain").putExtra(Intent.EXTRA_TEXT, "https://downloads.example.org/debian-13.2.0-amd64-netinst.iso");
        Robolectric.buildActivity(ShareActivity.class, send).setup();
        Scene.idle();
        return ShadowDialog.getLatestDialog();
    }

    /**
     * Makes a picture of the question after sharing from another app, in front of a plain ground in place of that app.
     */
    private void sharePicture(String name, int ground) throws Exception {
        scene.mobileAllowed();
        View behind = new View(scene.context);
        behind.layout(0, 0, 360, 720);
        behind.setBackgroundColor(ground);
        picture(name, behind, share());
    }

    @Test
    @Config(qualifiers = PHONE)
    public void shared() throws Exception {
        sharePicture("share", Color.WHITE);
    }

    @Test
    @Config(qualifiers = "w360dp-h720dp-night-mdpi")
    public void shared_night() throws Exception {
        sharePicture("share-night", Color.BLACK);
    }

    @Test
    @Config(qualifiers = PHONE)
    public void shared_largeFont() throws Exception {
        RuntimeEnvironment.setFontScale(2);
        sharePicture("share-large-font", Color.WHITE);
    }

    @Test
    @Config(qualifiers = ARABIC)
    public void shared_arabic() throws Exception {
        sharePicture("share-arabic", Color.WHITE);
    }

    @Test
    @Config(qualifiers = PHONE)
    public void appsThatBypass() throws Exception {
        ShadowPackageManager packages = shadowOf(scene.context.getPackageManager());
        for (String name : new String[] {"Sonos", "Browser", "Podcasts"}) {
            ActivityInfo main = new ActivityInfo();
            main.packageName = name.equals("Sonos") ? "com.sonos.acr2" : "org.example." + name;
            main.name = "Main";
            main.nonLocalizedLabel = name;
            packages.addOrUpdateActivity(main);
            IntentFilter launcher = new IntentFilter(Intent.ACTION_MAIN);
            launcher.addCategory(Intent.CATEGORY_LAUNCHER);
            packages.addIntentFilterForActivity(new ComponentName(main.packageName, "Main"), launcher);
        }
        scene.settings.setReach(Reach.VPN);
        View screen = open(MainActivity.class);
        screen.findViewById(R.id.around).performClick();
        picture("bypass", screen, ShadowDialog.getLatestDialog());
    }

    /** Two streams that join into one, as the launcher shows them. */
    @Test
    public void icon() throws Exception {
        Bitmap b = Bitmap.createBitmap(512, 512, Bitmap.Config.ARGB_8888);
        Canvas c = new Canvas(b);
        c.drawColor(scene.context.getColor(R.color.launcher));
        Drawable d = scene.context.getDrawable(R.drawable.launcher);
        d.setBounds(-128, -128, 640, 640); // without the border that launchers crop
        d.draw(c);
        Picture.of(b).matches(new File(STORE, "icon.png"));
    }

    @Test
    public void banner() throws Exception {
        Bitmap b = Bitmap.createBitmap(1024, 500, Bitmap.Config.ARGB_8888);
        Canvas c = new Canvas(b);
        c.drawColor(scene.context.getColor(R.color.launcher));
        Drawable d = scene.context.getDrawable(R.drawable.launcher);
        d.setBounds(0, -50, 600, 550);
        d.draw(c);
        Paint p = new Paint(Paint.ANTI_ALIAS_FLAG);
        p.setColor(0xff202124);
        p.setTextSize(96);
        c.drawText("Tributary", 450, 240, p);
        p.setTextSize(40);
        c.drawText("Wi-Fi and mobile data", 454, 310, p);
        c.drawText("at the same time", 454, 362, p);
        Picture.of(b).matches(new File(STORE, "featureGraphic.png"));
    }

    @Test
    @Config(qualifiers = PHONE)
    public void log() throws Exception {
        View screen = open(LogActivity.class);
        ((TextView) screen.findViewById(R.id.log)).setText("Tributary 1.0\nAndroid 14 (34), Example Phone\nlistening on 127.0.0.1:8080\nlink found: wlan0\n");
        picture("log", screen);
    }

    /** Returns the main screen down to its end, which names the version. */
    private View whole() {
        View screen = open(MainActivity.class);
        ((TextView) screen.findViewById(R.id.about)).setText(scene.context.getString(R.string.about, "1.0"));
        return screen;
    }

    @Test
    @Config(qualifiers = "w360dp-h1900dp-mdpi")
    public void stopped() throws Exception {
        picture("stopped", whole());
    }
}
