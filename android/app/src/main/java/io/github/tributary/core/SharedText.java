package io.github.tributary.core;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Finds what to download in text that another app shares. */
public final class SharedText {
    private static final Pattern URL = Pattern.compile("(?i)\\bhttps?://[^\\s<>\"'\\u00ab\\u00bb\\u201c\\u201d]+");

    private static final int MOST = 50; // URLs at once

    private SharedText() {}

    /** The first URL in the text, without what follows it in a sentence; null if there is none. */
    public static String url(CharSequence text) {
        if (text == null) {
            return null;
        }
        Matcher m = URL.matcher(text);
        if (!m.find()) {
            return null;
        }
        String s = m.group();
        int end = s.length();
        while (end > 0 && ".,;:!?*_".indexOf(s.charAt(end - 1)) >= 0 || end > 0 && unopened(s, end)) {
            end--;
        }
        s = s.substring(0, end);
        return s.indexOf("://") + 3 < s.length() ? s : null;
    }

    /**
     * The URLs of a text that is a list of them, separated by spaces or lines, each once; of other text the first URL. Empty if
     * there is none.
     */
    public static List<String> urls(CharSequence text) {
        Set<String> all = new LinkedHashSet<String>();
        for (String word : text == null ? new String[0] : text.toString().trim().split("\\s+")) {
            if (all.size() < MOST && URL.matcher(word).matches() && url(word) != null) {
                all.add(url(word));
            } else {
                all.clear(); // it is a sentence, or more than a person would look at
                break;
            }
        }
        if (all.isEmpty() && url(text) != null) {
            all.add(url(text));
        }
        return new ArrayList<String>(all);
    }

    /** Whether the last character closes a bracket that the URL does not open: that of the sentence around it. */
    private static boolean unopened(String s, int end) {
        char close = s.charAt(end - 1);
        char open = close == ')' ? '(' : close == ']' ? '[' : 0;
        if (open == 0) {
            return false;
        }
        int depth = 0;
        for (int i = 0; i < end; i++) {
            depth += s.charAt(i) == open ? 1 : s.charAt(i) == close ? -1 : 0;
        }
        return depth < 0;
    }
}
