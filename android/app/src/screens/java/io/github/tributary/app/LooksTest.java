package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.content.res.Resources;
import android.os.Looper;
import android.view.View;
import android.view.ViewGroup;
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
import org.robolectric.annotation.Config;

/** That people can hear the screens read aloud, and hit their buttons. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = 34)
public class LooksTest {
    private static final int TOUCH = 48; // dp: what Android asks for

    private Scene scene;

    @Before
    public void begin() {
        scene = new Scene();
    }

    @After
    public void end() {
        scene.close();
    }

    /** All screens, with as much on them as there can be. */
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

    /** What a screen shows below its title. */
    private static List<View> shown(Activity screen) {
        return shown(screen.findViewById(android.R.id.content));
    }

    private static String name(View v) {
        String id = "";
        try {
            id = v.getResources().getResourceEntryName(v.getId());
        } catch (Resources.NotFoundException e) { // it has none, or one made by its group
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

    private static boolean isText(View v) { // that can be selected: nothing is hit there
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

    /** What changes each second is not read aloud each second; what runs, and what went wrong, is. */
    @Test
    public void onlyNewsAreReadAloud() throws Exception {
        List<String> live = new ArrayList<String>();
        for (View v : shown(screens().get(0))) {
            if (v.getAccessibilityLiveRegion() != View.ACCESSIBILITY_LIVE_REGION_NONE) {
                live.add(v.getResources().getResourceEntryName(v.getId()));
            }
        }
        assertEquals(Arrays.asList("state", "relay"), live); // "ended" is seldom shown
    }
}
