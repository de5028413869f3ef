package io.github.tributary.core;

import java.io.UnsupportedEncodingException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What a downloaded file is called. */
public final class FileName {
    private static final int LONGEST = 200; // bytes: of 255, with room for what makes it another one
    private static final String NAMELESS = "download";

    /** RFC 6266 section 4.1: the second form, in UTF-8, is the better one. */
    private static final Pattern PLAIN = Pattern.compile("(?i);\\s*filename\\s*=\\s*(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([^\\s;\"]+))");

    private static final Pattern EXTENDED = Pattern.compile("(?i);\\s*filename\\*\\s*=\\s*UTF-8'[^']*'([^\\s;]+)");

    private FileName() {}

    /** What a Content-Disposition says, which may be null, or else the URL. */
    public static String of(String disposition, String url) {
        String said = disposition == null ? "" : said(disposition);
        return said.isEmpty() ? of(url) : clean(said.substring(said.lastIndexOf('/') + 1));
    }

    private static String said(String disposition) {
        Matcher m = EXTENDED.matcher(disposition);
        if (m.find()) {
            try {
                return URLDecoder.decode(m.group(1).replace("+", "%2B"), "UTF-8");
            } catch (IllegalArgumentException | UnsupportedEncodingException e) {
                // the other form may be better
            }
        }
        m = PLAIN.matcher(disposition);
        if (!m.find()) {
            return "";
        }
        return m.group(1) == null ? m.group(2) : m.group(1).replaceAll("\\\\(.)", "$1");
    }

    /** The last part of the URL's path, without what file systems or people could trip over. */
    public static String of(String url) {
        String path;
        try {
            path = new URI(url.replace(" ", "%20")).getPath();
        } catch (URISyntaxException e) {
            return NAMELESS;
        }
        return clean(path == null ? "" : path.substring(path.lastIndexOf('/') + 1));
    }

    private static String clean(String name) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean plain = Character.isLetterOrDigit(c) || " .,-_()[]+=@~".indexOf(c) >= 0;
            b.append(plain ? c : '_');
        }
        String plain = b.toString().trim();
        while (plain.startsWith(".")) { // hidden, or a folder
            plain = plain.substring(1);
        }
        while (plain.getBytes(StandardCharsets.UTF_8).length > LONGEST) { // the end of a name says what it is
            plain = plain.substring(Character.charCount(plain.codePointAt(0)));
        }
        return plain.isEmpty() ? NAMELESS : plain;
    }
}
