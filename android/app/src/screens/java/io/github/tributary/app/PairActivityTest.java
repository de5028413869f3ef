package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.app.AlertDialog;
import android.app.Application;
import android.content.Context;
import android.content.DialogInterface;
import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import android.os.Looper;
import android.os.Parcel;
import android.widget.Button;
import android.widget.EditText;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.Invitation;
import io.github.tributary.core.Status;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.json.JSONObject;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.shadows.ShadowAlertDialog;
import org.robolectric.shadows.ShadowToast;

/** Relays: the user is asked before one is used, the daemon does the rest, and the secret is not stored anywhere. */
@RunWith(RobolectricTestRunner.class)
public class PairActivityTest {
    private static final String TOKEN = "AbCdEfGhIjKlMnOpQrStUvWxYz012345";
    private static final String LINK = "tributary://relay.example.com:443#q3fX0123456789abcdefghijklmnopqrstuvwxyz-_0." + TOKEN;

    private final Application app = RuntimeEnvironment.getApplication();
    private final List<String> lines = new ArrayList<String>();
    private final HostSession session = new HostSession(lines::add, (handle, name) -> null, (handle, lookup) -> lookup.run(), null);

    private static AlertDialog question() {
        AlertDialog d = (AlertDialog) ShadowAlertDialog.getLatestDialog();
        return d != null && d.isShowing() ? d : null;
    }

    private static void answer(int button) {
        question().getButton(button).performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    private ActivityController<PairActivity> open(String link) {
        return Robolectric.buildActivity(PairActivity.class, new Intent(Intent.ACTION_VIEW, Uri.parse(link))).create();
    }

    private static String relay(Activity main) {
        return ((TextView) main.findViewById(R.id.relay)).getText().toString();
    }

    private static String button(Activity main) {
        return ((Button) main.findViewById(R.id.relay_change)).getText().toString();
    }

    @Test
    public void theCameraOpensTheLink() {
        Intent view = new Intent(Intent.ACTION_VIEW, Uri.parse(LINK)).addCategory(Intent.CATEGORY_BROWSABLE).setPackage(app.getPackageName());
        assertEquals(PairActivity.class.getName(), app.getPackageManager().resolveActivity(view, 0).activityInfo.name);
    }

    @Test
    public void theUserIsAskedFirst() {
        PairActivity asking = open(LINK).get();
        String text = shadowOf(question()).getMessage().toString();
        assertTrue(text, text.contains("relay.example.com") && text.contains("which sites") && text.contains("its address instead of yours"));
        assertFalse(text, text.contains(TOKEN));
        assertFalse("paired before the answer", App.relays(app).busy());
        assertNull("the proxy is started before the answer", shadowOf(app).getNextStartedService());
        assertTrue("other windows may lie over it", question().getButton(DialogInterface.BUTTON_POSITIVE).getFilterTouchesWhenObscured());
        answer(DialogInterface.BUTTON_POSITIVE);
        assertTrue(App.relays(app).busy());
        assertNotNull("no daemon", shadowOf(app).getNextStartedService());
        assertTrue(asking.isFinishing());
        assertNull("the secret stays", asking.getIntent().getData());
        assertEquals(MainActivity.class.getName(), shadowOf(asking).getNextStartedActivity().getComponent().getClassName());
        App.relays(app).session(session);
        assertEquals(1, lines.size());
        assertTrue(lines.get(0).contains("\"pair\"") && lines.get(0).contains(TOKEN));
    }

    private static String message() {
        return shadowOf(question()).getMessage().toString();
    }

    private void pairs(String link, long id) {
        open(link);
        answer(DialogInterface.BUTTON_POSITIVE);
        App.relays(app).answered(id, Invitation.in(link).address, "");
    }

    /**
     * The same name with another key may be somebody else: the user is warned, and nothing is replaced without a
     * question.
     */
    @Test
    public void anotherKeyIsWarnedOf() {
        String other = LINK.replace("q3fX", "zzzz").replace("relay", "RELAY");
        String warning = app.getString(R.string.pair_other_key, "RELAY.example.com:443");
        pairs(LINK, 1);
        open(LINK);
        assertFalse("the same key", message().contains("Warning"));
        answer(DialogInterface.BUTTON_NEGATIVE);
        open(other);
        assertTrue(message(), message().startsWith(warning) && message().contains("which sites"));
        assertEquals(app.getString(R.string.pair_replace), question().getButton(DialogInterface.BUTTON_POSITIVE).getText().toString());
        answer(DialogInterface.BUTTON_NEGATIVE);
        assertFalse("replaced without an answer", App.relays(app).busy());
        pairs(other, 2);
        open(other);
        assertFalse("it is known now", message().contains("Warning"));
        answer(DialogInterface.BUTTON_NEGATIVE);
        pairs(LINK.replace("relay.", "second."), 3);
        open(LINK); // the link of the one before the last
        assertTrue("a relay before the last is forgotten: " + message(), message().contains("Warning"));
        answer(DialogInterface.BUTTON_NEGATIVE);
        App.relays(app).remove("relay.example.com:443");
        App.relays(app).answered(4, "relay.example.com:443", "");
        open(LINK);
        assertFalse("it was removed: " + message(), message().contains("Warning"));
    }

    /** Older versions did not store the key. */
    @Test
    public void anUnknownKeyIsWarnedOf() {
        new Settings(app).setRelay("relay.example.com:443", "");
        open(LINK);
        assertTrue(message(), message().contains("Warning"));
    }

    /** Only apps that may use mobile data use the relay. */
    @Test
    public void aRelayThatCarriesNothingSaysSo() {
        Settings settings = new Settings(app);
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        assertEquals("there is none", android.view.View.GONE, main.findViewById(R.id.relay_apps).getVisibility());
        settings.setRelay("relay.example.com:443", "k");
        seconds(1);
        assertTrue(relay(main), relay(main).endsWith(app.getString(R.string.relay_idle)));
        assertEquals(android.view.View.VISIBLE, main.findViewById(R.id.relay_apps).getVisibility());
        main.findViewById(R.id.relay_apps).performClick();
        assertEquals("all", shadowOf(question()).getItems()[1].toString());
        settings.setApps(io.github.tributary.core.AppAccess.Choice.ALL, java.util.Collections.<String>emptySet());
        seconds(1);
        assertFalse(relay(main), relay(main).contains(app.getString(R.string.relay_idle)));
        assertEquals(android.view.View.GONE, main.findViewById(R.id.relay_apps).getVisibility());
    }

    @Test
    public void aRefusalPairsNothing() {
        PairActivity asking = open(LINK).get();
        answer(DialogInterface.BUTTON_NEGATIVE);
        assertFalse(App.relays(app).busy());
        assertTrue(asking.isFinishing());
        assertNull(shadowOf(app).getNextStartedService());
    }

    @Test
    public void halfALinkIsNone() {
        PairActivity asking = open(LINK.substring(0, LINK.length() - 1)).get();
        assertNull(question());
        assertTrue(asking.isFinishing());
        assertEquals(app.getString(R.string.pair_no_link), ShadowToast.getTextOfLatestToast());
    }

    @Test
    public void sharedAndPastedLinksAreAskedAbout() {
        Intent shared = new Intent(Intent.ACTION_SEND).putExtra(Intent.EXTRA_TEXT, "the relay: " + LINK);
        Activity share = Robolectric.buildActivity(ShareActivity.class, shared).create().get();
        Intent next = shadowOf(share).getNextStartedActivity();
        assertEquals(PairActivity.class.getName(), next.getComponent().getClassName());
        assertTrue(share.isFinishing());
        assertTrue("it would be a download", App.downloads(app).all().isEmpty());
        Robolectric.buildActivity(PairActivity.class, next).create();
        assertTrue(shadowOf(question()).getMessage().toString().contains("relay.example.com"));
        answer(DialogInterface.BUTTON_NEGATIVE);

        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        EditText line = (EditText) main.findViewById(R.id.url);
        line.setText(LINK);
        main.findViewById(R.id.add).performClick();
        assertEquals(PairActivity.class.getName(), shadowOf(main).getNextStartedActivity().getComponent().getClassName());
        assertEquals("the secret stays", "", line.getText().toString());

        main.findViewById(R.id.relay_change).performClick();
        EditText pasted = (EditText) question().findViewById(R.id.relay_link);
        pasted.setText("tributary://relay.example.com:443#half");
        question().getButton(DialogInterface.BUTTON_POSITIVE).performClick();
        assertNotNull("half a link is taken", pasted.getError());
        pasted.setText(LINK);
        answer(DialogInterface.BUTTON_POSITIVE);
        assertEquals(PairActivity.class.getName(), shadowOf(main).getNextStartedActivity().getComponent().getClassName());
        assertFalse("nobody has agreed yet", App.relays(app).busy());
    }

    @Test
    public void theScreenSaysHowItGoes() {
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        assertEquals(app.getString(R.string.relay_why), relay(main));
        assertEquals(app.getString(R.string.relay_add), button(main));
        App.relays(app).pair(Invitation.in(LINK));
        seconds(1);
        assertEquals(app.getString(R.string.relay_busy), relay(main));
        App.relays(app).session(session);
        App.relays(app).answered(1, "", "refused");
        seconds(1);
        assertTrue(relay(main), relay(main).contains(app.getString(R.string.pair_failed_refused)));
        App.relays(app).answered(1, "relay.example.com:443", "");
        assertEquals("it was refused", "", new Settings(app).relay());

        App.relays(app).pair(Invitation.in(LINK));
        App.relays(app).answered(2, "relay.example.com:443", "");
        seconds(1);
        assertEquals("relay.example.com:443", new Settings(app).relay());
        assertTrue(relay(main), relay(main).contains("Paired with relay.example.com:443"));
        assertEquals(app.getString(R.string.relay_remove), button(main));

        lines.clear();
        main.findViewById(R.id.relay_change).performClick();
        assertTrue(shadowOf(question()).getMessage().toString().contains("relay.example.com"));
        answer(DialogInterface.BUTTON_NEGATIVE);
        assertEquals("removed without an answer", 0, lines.size());
        main.findViewById(R.id.relay_change).performClick();
        answer(DialogInterface.BUTTON_POSITIVE);
        assertTrue(lines.get(0).contains("\"forget\""));
        App.relays(app).answered(3, "relay.example.com:443", "");
        assertEquals("", new Settings(app).relay());
    }

    private static void seconds(int n) {
        shadowOf(Looper.getMainLooper()).idleFor(n, TimeUnit.SECONDS);
    }

    @Test
    public void whoDoesNotAnswerIsNotWaitedForEndlessly() {
        App.relays(app).pair(Invitation.in(LINK));
        seconds(59);
        assertTrue(App.relays(app).busy());
        seconds(2);
        assertFalse(App.relays(app).busy());
        App.relays(app).session(session);
        assertEquals("the secret stays", 0, lines.size());
    }

    @Test
    public void lanesAreShownWithReasons() throws Exception {
        Status s =
                Status.parse(
                        new JSONObject(
                                "{'relay':{'address':'a.example:443','lanes':[{'link':'wlan0','up':true},{'link':'rmnet0','code':'unreachable'},"
                                        + "{'link':'eth0'},{'link':'x','code':'wrong_key'},{'link':'y','code':'not_accepted'},"
                                        + "{'link':'z','code':'full'},{'link':'v','code':'restarted'}]}}"));
        String text = Texts.relay(app, "a.example:443", s, false, null);
        for (int id : new int[] {R.string.relay_connected, R.string.relay_unreachable, R.string.relay_connecting, R.string.relay_wrong_key, R.string.relay_not_accepted, R.string.relay_full, R.string.relay_restarted}) {
            assertTrue(text, text.contains(app.getString(id)));
        }
        assertTrue(Texts.relay(app, "a.example:443", null, false, null).contains("Start Tributary"));
    }

    /** Only the daemon gets it: it appears in no file, no saved screen and no report. */
    @Test
    public void theSecretIsKeptNowhere() throws Exception {
        ActivityController<PairActivity> controller = open(LINK);
        Bundle saved = new Bundle();
        controller.start().resume().pause().stop().saveInstanceState(saved);
        Parcel parcel = Parcel.obtain();
        saved.writeToParcel(parcel, 0);
        assertFalse("saved", new String(parcel.marshall(), StandardCharsets.UTF_16LE).contains(TOKEN) || saved.toString().contains(TOKEN));
        answer(DialogInterface.BUTTON_POSITIVE);
        App.relays(app).session(session);
        App.relays(app).answered(1, "relay.example.com:443", "");
        for (String file : new String[] {"settings", "downloads", "proxy"}) {
            String all = app.getSharedPreferences(file, Context.MODE_PRIVATE).getAll().toString();
            assertFalse(file + ": " + all, all.contains(TOKEN));
        }
        Activity log = Robolectric.buildActivity(LogActivity.class).setup().get();
        String report = ((TextView) log.findViewById(R.id.log)).getText().toString();
        assertFalse(report, report.contains(TOKEN) || report.contains("relay.example.com"));
        assertFalse("the list of recent screens has it", (app.getPackageManager().getActivityInfo(controller.get().getComponentName(), 0).flags
                        & android.content.pm.ActivityInfo.FLAG_EXCLUDE_FROM_RECENTS)
                == 0);
    }
}
