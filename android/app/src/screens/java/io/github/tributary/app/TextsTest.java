package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.content.Context;
import io.github.tributary.R;
import io.github.tributary.core.Failure;
import io.github.tributary.core.Net;
import io.github.tributary.core.Shares;
import java.lang.reflect.Field;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

/** The texts that people read about a failure, which the daemon reports as a code. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = 36)
public class TextsTest {
    private final Context context = RuntimeEnvironment.getApplication();

    private String of(String code, String host, int status) {
        return Texts.failure(context, new Failure(code, host, status, "as the daemon says"));
    }

    @Test
    public void english() {
        assertEquals("example.com does not have the file", of("not_found", "example.com", 404));
        assertEquals("the server does not send the file (418)", of("status", "", 418));
        assertEquals("of a newer daemon", "as the daemon says", of("of_later", "example.com", 0));
        assertEquals("the storage is full", of("disk_full", "", 0));
    }

    @Test
    @Config(qualifiers = "de")
    public void german() {
        assertEquals("die Datei gibt es bei example.com nicht", of("not_found", "example.com", 404));
        assertEquals("keine Datei von dem Server (418)", of("status", "", 418));
    }

    /** A name keeps its own direction within Arabic, and the sentence keeps its own. */
    @Test
    @Config(qualifiers = "ar-ldrtl")
    public void arabic() {
        assertEquals("الملف غير موجود على \u200f\u202aexample.com\u202c\u200f".replace("\u200f", ""), of("not_found", "example.com", 404).replace("\u200f", ""));
        assertEquals("\u202aa (1).iso\u202c", Texts.isolated(context, "a (1).iso").replaceAll("[\u200e\u200f]", ""));
        assertEquals("تنزيلان", context.getResources().getQuantityString(R.plurals.downloads_running, 2, 2));
        assertEquals("Wi-Fi 60٪، بيانات الجوّال 40٪", latin(Texts.shares(context, Shares.NONE.plus(Net.Kind.WIFI, 6).plus(Net.Kind.CELLULAR, 4))));
        assertEquals("2 س و5 د", latin(Texts.duration(context, 7500)).replaceAll("[\u200e\u200f،]", "").replaceAll("\\s+", " "));
    }

    /** The digits that Arabic is written with depend on the version of the locale data. */
    private static String latin(String text) {
        StringBuilder b = new StringBuilder();
        for (char c : text.toCharArray()) {
            b.append(c >= '٠' && c <= '٩' ? (char) ('0' + c - '٠') : c);
        }
        return b.toString();
    }

    @Test
    public void timesAndShares() {
        assertEquals("45 sec", Texts.duration(context, 45));
        assertEquals("2 min", Texts.duration(context, 61));
        assertEquals("2 hr, 5 min", Texts.duration(context, 7500));
        assertEquals("", Texts.shares(context, Shares.NONE));
        assertEquals("Wi-Fi 60%, Mobile data 40%", Texts.shares(context, Shares.NONE.plus(Net.Kind.WIFI, 6).plus(Net.Kind.CELLULAR, 4)));
        assertEquals("an English name stays as it is", "a.iso", Texts.isolated(context, "a.iso"));
    }

    @Test
    public void everyCode() throws Exception {
        int n = 0;
        for (Field f : R.string.class.getFields()) {
            if (f.getName().startsWith("failure_")) {
                String text = of(f.getName().substring("failure_".length()), "example.com", 400);
                assertFalse(f.getName() + ": " + text, text.contains("%") || text.contains("as the daemon"));
                n++;
            }
        }
        assertTrue("only " + n, n > 20);
    }
}
