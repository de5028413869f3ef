package io.github.tributary.core;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Finds what to download in text that another app shares. */
public final class SharedText {
    private static final Pattern URL = Pattern.compile("(?i)\\bhttps?://[^\\s<>\"'\\u00ab\\u00bb\\u201c\\u201d]+");

    /** A checksum of 64 or 128 hexadecimal digits, alone or like "sha256:HEX". */
    private static final Pattern CHECKSUM = Pattern.compile("(?i)(?<![0-9a-z])(?:(sha-?256[:=])?([0-9a-f]{64})|(sha-?512[:=])?([0-9a-f]{128}))(?![0-9a-z])");

    private static final int MOST = 50; // URLs at once

    private SharedText() {}

    /** Returns the first URL in the text, without what follows it in a sentence; null if there is none. */
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
     * Returns what a text asks to download: for a list of URLs, separated by spaces or lines, each URL once; for other
     * text the first URL. Empty if there is none. A checksum in a list belongs to the URL before it; one before the
     * first URL belongs to that URL. In other text a single checksum belongs to the URL. "#sha256=HEX" at the end of a
     * URL is its checksum.
     */
    public static List<Source> sources(CharSequence text) {
        Map<String, Source> all = new LinkedHashMap<String, Source>();
        String first = "";
        String last = null;
        for (String word : text == null ? new String[0] : text.toString().trim().split("\\s+")) {
            Matcher sum = CHECKSUM.matcher(word);
            if (sum.matches() && last == null) {
                first = name(sum);
            } else if (sum.matches()) {
                all.put(last, all.get(last).verified(name(sum)));
            } else if (all.size() < MOST && URL.matcher(word).matches() && url(word) != null) {
                Source s = source(url(word), first);
                last = s.url;
                first = "";
                if (!all.containsKey(last)) {
                    all.put(last, s);
                }
            } else {
                all.clear(); // it is a sentence, or more than a person would look at
                break;
            }
        }
        if (all.isEmpty() && url(text) != null) {
            Source s = source(url(text), only(URL.matcher(text).replaceAll(" ")));
            all.put(s.url, s);
        }
        return new ArrayList<Source>(all.values());
    }

    /** Returns the source for a URL whose end may be its checksum. */
    private static Source source(String url, String sum) {
        int hash = url.indexOf('#');
        Matcher end = CHECKSUM.matcher(hash < 0 ? "" : url.substring(hash + 1));
        boolean labelled = end.matches() && (end.group(1) != null || end.group(3) != null);
        return labelled ? Source.of(url.substring(0, hash)).verified(name(end)) : Source.of(url).verified(sum);
    }

    /** Returns the checksum in a text; "" if there is none, or more than one. */
    private static String only(String text) {
        String found = "";
        Matcher m = CHECKSUM.matcher(text);
        while (m.find()) {
            if (!found.isEmpty()) {
                return "";
            }
            found = name(m);
        }
        return found;
    }

    /** Returns a checksum in the daemon's form. */
    private static String name(Matcher sum) {
        return (sum.group(2) != null ? "sha256:" + sum.group(2) : "sha512:" + sum.group(4)).toLowerCase(Locale.ROOT);
    }

    /**
     * Returns whether the last character closes a bracket that the URL does not open: it belongs to the sentence around
     * the URL.
     */
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
