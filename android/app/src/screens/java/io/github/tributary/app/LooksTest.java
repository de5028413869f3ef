package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.content.res.Resources;
import android.content.res.TypedArray;
import android.graphics.Color;
import android.os.Build;
import android.os.Looper;
import android.text.Layout;
import android.view.View;
import android.view.ViewGroup;
import android.widget.Button;
import android.widget.EditText;
import android.widget.ScrollView;
import android.widget.TextView;
import io.github.tributary.R;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
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

/** Checks that people can read the screens, hear them read aloud, and hit their buttons. */
@RunWith(RobolectricTestRunner.class)
public class LooksTest {
    private static final int TOUCH = 48; // dp: Android's requirement
    private static final double CONTRAST = 4.5; // the requirement of WCAG 2.1, level AA

    private Scene scene;

    @Before
    public void begin() {
        scene = new Scene();
    }

    @After
    public void end() {
        scene.close();
    }

    /** Returns all screens, with as much on them as possible. */
    private List<Activity> screens() throws Exception {
        scene.mobileAllowed();
        scene.starts();
        scene.wifi();
        scene.mobile();
        scene.downloadsForAMinute();
        scene.downloads(true);
        List<Activity> all = new ArrayList<Activity>();
        for (Class<? extends Activity> c : Arrays.asList(MainActivity.class, WelcomeActivity.class, LogActivity.class)) {
            all.add(Robolectric.buildActivity(c).setup().get());
        }
        scene.report(4_300_000, 252_000_000, 3_100_000, 112_000_000);
        shadowOf(Looper.getMainLooper()).idleFor(1, TimeUnit.SECONDS);
        return all;
    }

    private static List<View> shown(View v) {
        List<View> all = new ArrayList<View>();
        if (v.getVisibility() == View.VISIBLE) {
            all.add(v);
            for (int i = 0; v instanceof ViewGroup && i < ((ViewGroup) v).getChildCount(); i++) {
                all.addAll(shown(((ViewGroup) v).getChildAt(i)));
            }
        }
        return all;
    }

    /** Returns what a screen shows below its title. */
    private static List<View> shown(Activity screen) {
        return shown(screen.findViewById(android.R.id.content));
    }

    private static String name(View v) {
        String id = "";
        try {
            id = v.getResources().getResourceEntryName(v.getId());
        } catch (Resources.NotFoundException e) { // it has no ID, or one created by its group
            id = v instanceof TextView ? ((TextView) v).getText().toString() : "";
        }
        return v.getClass().getSimpleName() + " " + id + " in " + v.getContext().getClass().getSimpleName();
    }

    @Test
    public void everythingIsLargeEnoughForAFinger() throws Exception {
        int n = 0;
        for (Activity screen : screens()) {
            float dp = screen.getResources().getDisplayMetrics().density;
            for (View v : shown(screen)) {
                if (v.isClickable() && !(v instanceof ScrollView)) {
                    assertTrue(name(v) + ": " + v.getHeight() / dp + " dp", v.getHeight() >= TOUCH * dp || isText(v));
                    assertTrue(name(v), v.getWidth() >= TOUCH * dp);
                    n++;
                }
            }
        }
        assertTrue("only " + n, n > 20);
    }

    private static boolean isText(View v) { // selectable text: it is not a touch target
        return v instanceof TextView && ((TextView) v).isTextSelectable();
    }

    @Test
    public void everythingHasWords() throws Exception {
        for (Activity screen : screens()) {
            List<View> all = shown(screen);
            for (View v : all) {
                if (v.isClickable() && !(v instanceof ScrollView) || v instanceof RateGraph) {
                    CharSequence text = v instanceof TextView ? ((TextView) v).getText() : "";
                    CharSequence hint = v instanceof EditText ? ((EditText) v).getHint() : null;
                    boolean labelled = false;
                    for (View other : all) {
                        labelled |= v.getId() != View.NO_ID && other.getLabelFor() == v.getId();
                    }
                    assertTrue(name(v), text.length() > 0 || hint != null || labelled || v.getContentDescription() != null);
                }
            }
        }
    }

    /**
     * No keyboard opens for a field that the user did not touch, and screen readers do not stop at the group that has
     * the focus.
     */
    @Test
    public void noFieldIsEditedAtFirst() throws Exception {
        for (Activity screen : screens()) {
            if (screen instanceof LogActivity) {
                continue; // it has no fields
            }
            View window = screen.getWindow().getDecorView();
            window.restoreDefaultFocus(); // as Android 8 does, and later ones with a keyboard
            View focused = window.findFocus();
            assertTrue(screen + " begins at " + focused, focused instanceof Column);
            assertFalse(name(focused), focused.isImportantForAccessibility());
        }
    }

    /** A row is read as one item, and says everything that it shows. */
    @Test
    public void aNetworkIsReadAsOne() throws Exception {
        Activity screen = screens().get(0);
        ViewGroup list = (ViewGroup) screen.findViewById(R.id.links);
        assertEquals(2, list.getChildCount());
        String said = list.getChildAt(0).findViewById(R.id.row).getContentDescription().toString();
        for (int id : new int[] {R.id.network, R.id.rate, R.id.use}) {
            TextView part = (TextView) list.getChildAt(0).findViewById(id);
            assertTrue(said + " lacks " + part.getText(), said.contains(part.getText()));
            assertEquals(View.IMPORTANT_FOR_ACCESSIBILITY_NO, part.getImportantForAccessibility());
        }
        String graph = screen.findViewById(R.id.graph).getContentDescription().toString();
        assertTrue(graph, graph.contains("Wi-Fi"));
    }

    /** What changes each second is not read aloud each second; what is running, and what failed, is. */
    @Test
    public void onlyNewsAreReadAloud() throws Exception {
        List<String> live = new ArrayList<String>();
        for (View v : shown(screens().get(0))) {
            if (v.getAccessibilityLiveRegion() != View.ACCESSIBILITY_LIVE_REGION_NONE) {
                live.add(v.getResources().getResourceEntryName(v.getId()));
            }
        }
        assertEquals(Arrays.asList("state", "relay"), live); // "ended" is rarely shown
    }

    /** The screen reader moves down the screen, and jumps from heading to heading. */
    @Test
    @Config(sdk = {29, 31, 34, 35, 36})
    public void headingsLeadThroughTheScreen() throws Exception {
        List<String> headings = new ArrayList<String>();
        int bottom = 0;
        for (View v : shown(screens().get(0))) {
            if (v instanceof TextView && v.isAccessibilityHeading()) {
                headings.add(((TextView) v).getText().toString());
                int[] at = new int[2];
                v.getLocationInWindow(at);
                assertTrue("the order is not that of the screen", at[1] >= bottom);
                bottom = at[1];
            }
            assertEquals(name(v), View.NO_ID, v.getAccessibilityTraversalBefore());
        }
        assertEquals(Arrays.asList("Downloads", "Networks", "Mobile data", "Use with other apps", "Relay", "Permissions and why they are needed"), headings);
    }

    @Test
    @Config(qualifiers = "w1000dp-h700dp-land")
    public void linesAreNotTooLongOnATablet() throws Exception {
        for (Activity screen : screens()) {
            float dp = screen.getResources().getDisplayMetrics().density;
            for (View v : shown(screen)) {
                if (v instanceof Button || v instanceof EditText) {
                    int[] at = new int[2];
                    v.getLocationInWindow(at);
                    assertTrue(name(v) + ": " + v.getWidth() / dp + " dp", v.getWidth() <= 600 * dp);
                }
            }
        }
    }

    /** On a small screen with large fonts nothing is cut off, except file names and typed text. */
    @Test
    @Config(sdk = 34, qualifiers = "w320dp-h480dp-mdpi")
    @GraphicsMode(GraphicsMode.Mode.NATIVE)
    public void largeLettersAreNotCutOff() throws Exception {
        RuntimeEnvironment.setFontScale(2);
        fits();
    }

    @Test
    @Config(sdk = 34, qualifiers = "ar-ldrtl-w480dp-h320dp-land-mdpi")
    @GraphicsMode(GraphicsMode.Mode.NATIVE)
    public void arabicFitsALowScreen() throws Exception {
        RuntimeEnvironment.setFontScale(1.3f);
        fits();
    }

    private void fits() throws Exception {
        int n = 0;
        for (Activity screen : screens()) {
            assertTrue(screen + " does not scroll", screen.findViewById(R.id.screen) instanceof ScrollView);
            for (View v : shown(screen)) {
                Layout l = v instanceof TextView && v.getId() != R.id.name && !(v instanceof EditText) ? ((TextView) v).getLayout() : null;
                if (l == null) {
                    continue;
                }
                n++;
                int room = v.getHeight() - ((TextView) v).getTotalPaddingTop() - ((TextView) v).getTotalPaddingBottom();
                assertTrue(name(v) + " is cut off: " + l.getText(), l.getHeight() <= room);
                int[] at = new int[2];
                v.getLocationInWindow(at);
                assertTrue(name(v) + " is beside the screen: " + l.getText(), at[0] >= 0 && at[0] + v.getWidth() <= screen.getWindow().getDecorView().getWidth());
                for (int i = 0; i < l.getLineCount(); i++) {
                    assertTrue(name(v) + ": " + l.getText(), l.getEllipsisCount(i) == 0 && l.getLineMax(i) <= l.getWidth() + 1);
                }
            }
        }
        assertTrue("only " + n, n > 40);
    }

    @Test
    public void textsStandOutByDay() throws Exception {
        standsOut();
    }

    @Test
    @Config(sdk = {29, 31, 34, 35, 36}, qualifiers = "night")
    public void textsStandOutByNight() throws Exception {
        standsOut();
    }

    private void standsOut() throws Exception {
        for (Activity screen : screens()) {
            TypedArray a = screen.obtainStyledAttributes(new int[] {android.R.attr.colorBackground});
            int ground = a.getColor(0, 0);
            assertEquals("not a color", 255, Color.alpha(ground));
            for (View v : shown(screen)) {
                if (v instanceof TextView && v.isEnabled() && !(v instanceof Button && v.getBackground() != null && !(v instanceof android.widget.CompoundButton))) {
                    int color = over(((TextView) v).getCurrentTextColor(), ground);
                    assertTrue(name(v) + ": " + contrast(color, ground), contrast(color, ground) >= CONTRAST);
                }
            }
            for (int color : new int[] {R.color.wifi, R.color.cellular, R.color.other}) {
                assertTrue("a network's color", contrast(screen.getColor(color), ground) >= (Build.VERSION.SDK_INT >= 29 ? 3 : 2.9)); // shapes: 3
            }
        }
    }

    private static int over(int color, int ground) {
        int a = Color.alpha(color);
        return Color.rgb(
                (Color.red(color) * a + Color.red(ground) * (255 - a)) / 255,
                (Color.green(color) * a + Color.green(ground) * (255 - a)) / 255,
                (Color.blue(color) * a + Color.blue(ground) * (255 - a)) / 255);
    }

    /** Returns the contrast as WCAG defines it. */
    private static double contrast(int a, int b) {
        double x = Color.luminance(a) + 0.05;
        double y = Color.luminance(b) + 0.05;
        return Math.max(x, y) / Math.min(x, y);
    }
}
