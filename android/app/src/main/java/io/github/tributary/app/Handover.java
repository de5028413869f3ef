package io.github.tributary.app;

import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import android.provider.Browser;
import io.github.tributary.core.Source;
import java.util.Locale;

/**
 * What a browser hands over with a link, so that the server recognizes its user: the fields of
 * {@link Browser#EXTRA_HEADERS}, and the page of {@link Intent#EXTRA_REFERRER}. Only these three fields are used, since
 * any app can send such an intent.
 */
final class Handover {
    private static final String[] FIELDS = {"Referer", "Cookie", "User-Agent"};

    private Handover() {}

    /** Returns a source with the fields in the intent that named it. */
    static Source source(Source s, Intent intent) {
        for (String name : FIELDS) {
            String value = field(intent, name);
            s = s.with(name, value == null && name.equals("Referer") ? referrer(intent) : value);
        }
        return s;
    }

    /** Returns the field; null if there is none. */
    private static String field(Intent intent, String name) {
        Bundle fields = intent.getBundleExtra(Browser.EXTRA_HEADERS);
        if (fields != null) {
            for (String key : fields.keySet()) {
                if (key.toLowerCase(Locale.ROOT).equals(name.toLowerCase(Locale.ROOT))) {
                    return fields.getString(key);
                }
            }
        }
        return null;
    }

    /** Returns the page that named the link, without its fragment; null if it was an app. */
    @SuppressWarnings("deprecation") // Android 8 lacks its newer form
    private static String referrer(Intent intent) {
        Object extra = intent.getParcelableExtra(Intent.EXTRA_REFERRER);
        Uri page = extra instanceof Uri ? (Uri) extra : null;
        boolean web = page != null && page.getScheme() != null && page.getScheme().toLowerCase(Locale.ROOT).matches("https?");
        return web ? page.buildUpon().fragment(null).build().toString() : null;
    }
}
