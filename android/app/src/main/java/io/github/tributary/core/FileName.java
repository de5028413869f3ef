package io.github.tributary.core;

import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;

/** Names a downloaded file until its server has named it. */
public final class FileName {
    private static final int LONGEST = 200; // bytes of 255, with room for a suffix that makes it unique
    private static final String NAMELESS = "download";

    private FileName() {}

    /** Returns the last part of the URL's path, without characters that file systems or people could trip over. */
    public static String of(String url) {
        String path;
        try {
            path = new URI(url.replace(" ", "%20")).getPath();
        } catch (URISyntaxException e) {
            return NAMELESS;
        }
        String name = path == null ? "" : path.substring(path.lastIndexOf('/') + 1);
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
