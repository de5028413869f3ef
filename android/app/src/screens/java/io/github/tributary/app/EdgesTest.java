package io.github.tributary.app;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.app.Activity;
import android.content.res.TypedArray;
import android.graphics.Insets;
import android.view.View;
import android.view.WindowInsets;
import io.github.tributary.R;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

/** From Android 15 on, screens extend behind the system's bars. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {35, 36})
public class EdgesTest {
    private static int[] padding(Activity screen, WindowInsets insets) {
        View v = screen.findViewById(R.id.screen);
        v.dispatchApplyWindowInsets(insets);
        return new int[] {v.getPaddingLeft(), v.getPaddingTop(), v.getPaddingRight(), v.getPaddingBottom()};
    }

    @Test
    public void nothingIsHiddenBehindTheBars() {
        WindowInsets bars = new WindowInsets.Builder().setInsets(WindowInsets.Type.systemBars(), Insets.of(7, 0, 9, 120)).build();
        WindowInsets none = new WindowInsets.Builder().build();
        Activity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        Activity log = Robolectric.buildActivity(LogActivity.class).setup().get();
        for (Activity screen : new Activity[] {main, log}) {
            assertArrayEquals(new int[] {7, 0, 9, 120}, padding(screen, bars));
            assertArrayEquals("turned, it keeps a gap", new int[4], padding(screen, none));
        }
    }

    @Test
    public void theBarsAreLegibleByDay() {
        assertTrue(light());
    }

    @Test
    @Config(sdk = {35, 36}, qualifiers = "night")
    public void theBarsAreLegibleByNight() {
        assertEquals(false, light());
    }

    /** Returns whether the icons of both bars are dark, for a light screen. */
    private static boolean light() {
        Activity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        int[] names = {android.R.attr.windowLightStatusBar, android.R.attr.windowLightNavigationBar};
        TypedArray a = main.obtainStyledAttributes(names);
        assertEquals(a.getBoolean(0, false), a.getBoolean(1, false));
        return a.getBoolean(0, false);
    }
}
