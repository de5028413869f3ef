package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.app.AlertDialog;
import android.app.Application;
import android.content.ClipboardManager;
import android.content.DialogInterface;
import android.content.Intent;
import android.content.res.TypedArray;
import android.content.pm.PackageManager;
import android.net.Uri;
import android.os.Bundle;
import android.os.Looper;
import android.provider.Browser;
import android.view.View;
import android.view.ViewGroup;
import android.widget.CheckBox;
import io.github.tributary.R;
import io.github.tributary.core.Limits;
import io.github.tributary.core.MobilePolicy;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowAlertDialog;
import org.robolectric.shadows.ShadowToast;

/** Links from other apps: the user is asked, whatever the intent contains. */
@RunWith(RobolectricTestRunner.class)
public class ShareActivityTest {
    @Rule public final EndsDownloads ends = new EndsDownloads();

    private final Application app = RuntimeEnvironment.getApplication();
    private Downloads downloads;

    @Before
    public void start() {
        shadowOf(app).grantPermissions(Manifest.permission.WRITE_EXTERNAL_STORAGE); // else downloads wait
        downloads = App.downloads(app);
    }

    /** Returns the intents that other apps can send, with a link to https://example.com/a/x.iso. */
    private Map<String, Intent> intents() {
        Uri link = Uri.parse("https://example.com/a/x.iso");
        String text = "see https://example.com/a/x.iso.";
        Intent explicit = new Intent(app, ShareActivity.class);
        Map<String, Intent> all = new LinkedHashMap<String, Intent>();
        all.put("VIEW", new Intent(Intent.ACTION_VIEW, link));
        all.put("SEND", new Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_TEXT, text));
        all.put("SEND, in the subject", new Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_SUBJECT, text));
        all.put("explicit, data", new Intent(explicit).setData(link));
        all.put("explicit, text", new Intent(explicit).putExtra(Intent.EXTRA_TEXT, text));
        all.put("explicit, another action", new Intent(explicit).setAction("x.y.Z").putExtra(Intent.EXTRA_TEXT, text));
        all.put("explicit, SEND", new Intent(explicit).setAction(Intent.ACTION_SEND).putExtra(Intent.EXTRA_TEXT, text));
        return all;
    }

    @Test
    public void itIsNoBrowser() {
        for (String link : new String[] {"http://example.com/", "https://example.com/a/x.iso"}) {
            Intent view = new Intent(Intent.ACTION_VIEW, Uri.parse(link)).addCategory(Intent.CATEGORY_BROWSABLE).setPackage(app.getPackageName());
            assertNull(link, app.getPackageManager().resolveActivity(view, 0));
        }
        Intent send = new Intent(Intent.ACTION_SEND).setType("text/plain").setPackage(app.getPackageName());
        assertEquals(ShareActivity.class.getName(), app.getPackageManager().resolveActivity(send, 0).activityInfo.name);
    }

    /** The theme is not that of Android 2.3, which has neither light nor dark. */
    @Test
    public void theQuestionLooksLikeTheApp() {
        TypedArray a = open(intents().get("SEND")).obtainStyledAttributes(new int[] {android.R.attr.windowIsTranslucent, android.R.attr.alertDialogTheme});
        TypedArray screen = Robolectric.buildActivity(MainActivity.class).create().get().obtainStyledAttributes(new int[] {android.R.attr.alertDialogTheme});
        assertTrue(a.getBoolean(0, false));
        assertTrue(screen.getResourceId(0, 0) != 0);
        assertEquals(screen.getResourceId(0, 0), a.getResourceId(1, 0));
    }

    private ShareActivity open(Intent intent) {
        return Robolectric.buildActivity(ShareActivity.class, intent).create().get();
    }

    /** Returns the question on the screen; null if there is none. */
    private AlertDialog question() {
        AlertDialog d = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        return d != null && d.isShowing() ? d : null;
    }

    private String text() {
        return shadowOf(question()).getMessage().toString();
    }

    private void answer(int button) {
        question().getButton(button).performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    private void nothingBegan(String what) {
        assertTrue(what + " downloads by itself", downloads.all().isEmpty());
        assertNull(what + " starts the proxy", shadowOf(app).getNextStartedService());
    }

    @Test
    public void everyIntentIsAskedAbout() {
        for (Map.Entry<String, Intent> e : intents().entrySet()) {
            ShareActivity shared = open(e.getValue());
            nothingBegan(e.getKey());
            assertNotNull(e.getKey() + " is not asked about", question());
            assertTrue(text(), text().contains("x.iso") && text().contains("example.com"));
            answer(DialogInterface.BUTTON_POSITIVE);
            assertTrue(e.getKey() + ": it stays", shared.isFinishing());
            assertEquals(e.getKey(), 1, downloads.all().size());
            assertEquals(e.getKey(), "https://example.com/a/x.iso", downloads.all().get(0).state().source.url);
            assertNotNull(e.getKey() + ": the proxy is not there", shadowOf(app).getNextStartedService());
            downloads.remove(downloads.all().get(0));
        }
    }

    @Test
    @Config(sdk = 26)
    public void theFirstDownloadAsksWhereTo() {
        shadowOf(app).denyPermissions(Manifest.permission.WRITE_EXTERNAL_STORAGE);
        ShareActivity shared = open(intents().get("SEND"));
        answer(DialogInterface.BUTTON_POSITIVE);
        nothingBegan("without an answer it");
        assertFalse("nobody hears the answer", shared.isFinishing());
        String[] asked = shadowOf(shared).getLastRequestedPermission().requestedPermissions;
        shared.onRequestPermissionsResult(1, asked, new int[] {PackageManager.PERMISSION_DENIED});
        assertEquals(1, downloads.all().size());
        assertTrue("it stays", shared.isFinishing());
    }

    /** For a player, which gets the file over all networks. */
    @Test
    public void aLocalAddressIsCopied() {
        open(intents().get("SEND"));
        assertTrue("a window over it passes the touch on", question().getButton(DialogInterface.BUTTON_NEUTRAL).getFilterTouchesWhenObscured());
        answer(DialogInterface.BUTTON_NEUTRAL);
        ClipboardManager clips = (ClipboardManager) app.getSystemService(Application.CLIPBOARD_SERVICE);
        String local = clips.getPrimaryClip().getItemAt(0).getText().toString();
        assertEquals("http://127.0.0.1:8081/" + new Settings(app).gatewayToken() + "/https/example.com/a/x.iso", local);
        assertTrue(local, new Settings(app).gatewayToken().length() >= 22);
        assertTrue("the clip is shown", clips.getPrimaryClipDescription().getExtras().getBoolean("android.content.extra.IS_SENSITIVE"));
        assertTrue("it cannot be taken back", new Settings(app).addressGiven());
        assertTrue("nothing is downloaded", downloads.all().isEmpty());
        assertNotNull("nobody serves it", shadowOf(app).getNextStartedService());
        open(new Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_TEXT, "http://example.com/x.iso"));
        assertEquals("plain http needs none", View.GONE, question().getButton(DialogInterface.BUTTON_NEUTRAL).getVisibility());
    }

    /** The case in which the first run was skipped: the download starts, and mobile data joins when the user agrees. */
    @Test
    public void mobileDataIsAskedAboutWhenItIsNeeded() {
        shadowOf(app.getPackageManager()).setSystemFeature(PackageManager.FEATURE_TELEPHONY, true);
        Settings settings = new Settings(app);
        ShareActivity shared = open(intents().get("SEND"));
        assertTrue(text(), text().endsWith(app.getString(R.string.cost_asked)));
        answer(DialogInterface.BUTTON_POSITIVE);
        assertEquals("it waits for the answer", 1, downloads.all().size());
        assertFalse("nobody hears the answer", shared.isFinishing());
        assertEquals(app.getString(R.string.consent), text());
        assertTrue("other windows may lie over it", question().getButton(DialogInterface.BUTTON_POSITIVE).getFilterTouchesWhenObscured());
        question().cancel(); // like "back"
        shadowOf(Looper.getMainLooper()).idle();
        assertTrue("it stays", shared.isFinishing());
        assertFalse("no answer is none", settings.policy().mobileAllowed() || settings.mobileAnswered());

        shared = open(intents().get("SEND"));
        answer(DialogInterface.BUTTON_POSITIVE);
        answer(DialogInterface.BUTTON_POSITIVE);
        assertTrue("it stays", shared.isFinishing());
        assertTrue(settings.policy().mobileAllowed());
        open(intents().get("SEND"));
        assertTrue(text(), text().contains("mobile data will be used"));
        answer(DialogInterface.BUTTON_POSITIVE);
        assertNull("asked again", question());
    }

    @Test
    public void aRefusalOfMobileDataIsKept() {
        shadowOf(app.getPackageManager()).setSystemFeature(PackageManager.FEATURE_TELEPHONY, true);
        ShareActivity shared = open(intents().get("SEND"));
        answer(DialogInterface.BUTTON_NEUTRAL); // an address for a player, which uses the same networks
        assertEquals(app.getString(R.string.consent), text());
        answer(DialogInterface.BUTTON_NEGATIVE);
        assertTrue("it stays", shared.isFinishing());
        assertFalse(new Settings(app).policy().mobileAllowed());
        open(intents().get("SEND"));
        assertTrue(text(), text().endsWith("Mobile data will not be used."));
        answer(DialogInterface.BUTTON_POSITIVE);
        assertNull("asked again", question());
    }

    @Test
    public void cancelDoesNothing() {
        for (Map.Entry<String, Intent> e : intents().entrySet()) {
            ShareActivity refused = open(e.getValue());
            answer(DialogInterface.BUTTON_NEGATIVE);
            nothingBegan(e.getKey());
            assertTrue(e.getKey() + ": it stays", refused.isFinishing());
            ShareActivity left = open(e.getValue());
            question().cancel(); // like "back"
            shadowOf(Looper.getMainLooper()).idle();
            nothingBegan(e.getKey());
            assertTrue(e.getKey() + ": it stays", left.isFinishing());
        }
        assertNull("the user is told of a download", ShadowToast.getLatestToast());
    }

    @Test
    public void theQuestionNamesTheServer() {
        open(new Intent(Intent.ACTION_VIEW, Uri.parse("https://bank.example@evil.example:8443/bank.example/a%20b.apk?c=/d.txt")));
        assertTrue(text(), text().startsWith("a b.apk\nfrom evil.example\n"));
    }

    @Test
    public void theQuestionTellsWhatItMayCost() {
        Settings settings = new Settings(app);
        Intent link = new Intent(Intent.ACTION_VIEW, Uri.parse("https://example.com/a/x.iso"));
        open(link);
        assertTrue(text(), text().endsWith("Mobile data will not be used."));
        settings.setMode(MobilePolicy.Mode.MOBILE_HELPS);
        open(link);
        assertTrue("without consent there is no mobile data: " + text(), text().endsWith("Mobile data will not be used."));
        settings.setConsent(true);
        open(link);
        assertTrue(text(), text().contains("mobile data will be used") && text().contains("cost money") && text().contains("not set a monthly limit"));
        settings.setMode(MobilePolicy.Mode.MOBILE_BACKUP);
        settings.setLimits(new Limits(2_000_000_000, 300_000_000, 1));
        settings.setRoaming(true);
        open(link);
        assertTrue(text(), text().contains("if Wi-Fi fails") && text().contains("cost money"));
        assertTrue(text(), text().matches("(?s).*Roaming is allowed. Your monthly limit is 2[.,]00 GB. Your daily limit is 300 MB."));
    }

    @Test
    public void aListOfLinksIsAskedAboutAtOnce() {
        open(new Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_TEXT, "https://example.com/a/x.iso\nhttps://example.org/y.iso\nhttps:///z"));
        assertTrue(text(), text().startsWith("example.com: x.iso\nexample.org: y.iso\n\n"));
        nothingBegan("a list");
        answer(DialogInterface.BUTTON_POSITIVE);
        assertEquals(2, downloads.all().size());
    }

    @Test
    public void aChecksumIsTold() {
        open(new Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_TEXT, "https://example.com/a/x.iso\n" + "0".repeat(64) + "  x.iso"));
        assertTrue(text(), text().contains("\n\nThe file is checked against the given checksum. Mobile data"));
        answer(DialogInterface.BUTTON_POSITIVE);
        assertEquals("sha256:" + "0".repeat(64), downloads.all().get(0).state().source.checksum);
    }

    /** What a browser hands over with a link goes to the server, and nothing else does. */
    @Test
    public void theServerKnowsTheBrowsersUser() {
        Bundle fields = new Bundle();
        fields.putString("cookie", "session=secret");
        fields.putString("User-Agent", "Browser/1");
        fields.putString("Range", "bytes=0-1");
        fields.putString("Authorization", "Basic eA==");
        Intent link = new Intent(Intent.ACTION_VIEW, Uri.parse("https://example.com/a/x.iso")).putExtra(Browser.EXTRA_HEADERS, fields);
        link.putExtra(Intent.EXTRA_REFERRER, Uri.parse("https://example.com/page?q#part"));
        open(link);
        assertFalse("others look at the screen", text().contains("secret"));
        answer(DialogInterface.BUTTON_POSITIVE);
        List<String> header = downloads.all().get(0).state().source.header;
        assertEquals(Arrays.asList("Referer: https://example.com/page?q", "Cookie: session=secret", "User-Agent: Browser/1"), header);
        fields.putString("Referer", "https://example.com/other");
        open(link.putExtra(Browser.EXTRA_HEADERS, fields));
        answer(DialogInterface.BUTTON_POSITIVE);
        assertEquals("Referer: https://example.com/other", downloads.all().get(1).state().source.header.get(0));
        open(new Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_TEXT, "https://example.com/1 https://example.org/2").putExtra(Browser.EXTRA_HEADERS, fields));
        answer(DialogInterface.BUTTON_POSITIVE);
        assertTrue("they are for one server", downloads.all().get(2).state().source.header.isEmpty());
        open(new Intent(Intent.ACTION_VIEW, link.getData()).putExtra(Intent.EXTRA_REFERRER, Uri.parse("android-app://org.example.browser")));
        answer(DialogInterface.BUTTON_POSITIVE);
        assertTrue("no page", downloads.all().get(4).state().source.header.isEmpty());
    }

    /** Returns the box in the question on the screen. */
    private CheckBox wifiOnly() {
        return (CheckBox) ((ViewGroup) shadowOf(question()).getView()).getChildAt(0);
    }

    @Test
    public void aDownloadKeepsToWifi() {
        Intent link = new Intent(Intent.ACTION_VIEW, Uri.parse("https://example.com/a/x.iso"));
        open(link);
        assertEquals("nothing may cost money anyway", View.GONE, wifiOnly().getVisibility());
        new Settings(app).setConsent(true);
        new Settings(app).setMode(MobilePolicy.Mode.MOBILE_HELPS);
        open(link);
        assertEquals(View.VISIBLE, wifiOnly().getVisibility());
        assertEquals("Use Wi-Fi only", wifiOnly().getText().toString());
        assertTrue("a window over it passes the touch on", wifiOnly().getFilterTouchesWhenObscured());
        answer(DialogInterface.BUTTON_POSITIVE);
        assertFalse(downloads.all().get(0).state().unmetered);
        open(link);
        wifiOnly().performClick();
        answer(DialogInterface.BUTTON_POSITIVE);
        assertTrue(downloads.all().get(1).state().unmetered);
    }

    @Test
    public void aWindowOverTheQuestionCannotPassTheTouchOn() {
        open(new Intent(Intent.ACTION_VIEW, Uri.parse("https://example.com/a/x.iso")));
        assertTrue(question().getButton(DialogInterface.BUTTON_POSITIVE).getFilterTouchesWhenObscured());
    }

    @Test
    public void whatHasNoLinkIsRefused() {
        for (Intent intent : new Intent[] {
            new Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_TEXT, "no link"),
            new Intent(Intent.ACTION_SEND),
            new Intent(Intent.ACTION_VIEW, Uri.parse("https:///x.iso")),
            new Intent(Intent.ACTION_VIEW, Uri.parse("file:///data/x.iso")),
            new Intent(app, ShareActivity.class),
        }) {
            ShadowToast.reset();
            ShareActivity refused = open(intent);
            assertNull(intent + " is asked about", question());
            assertTrue(intent + " stays", refused.isFinishing());
            assertNotNull("the user hears nothing", ShadowToast.getLatestToast());
            nothingBegan(intent.toString());
        }
        assertFalse(downloads.active());
    }
}
