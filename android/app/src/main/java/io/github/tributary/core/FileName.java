package io.github.tributary.core;

import java.net.URI;
import java.net.URISyntaxException;

/** What a downloaded file is called. */
public final class FileName {
    private static final int LONGEST = 120; // characters
    private static final String NAMELESS = "download";

    private FileName() {}

    /** The last part of the URL's path, without what file systems or people could trip over. */
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
        name = b.toString().trim();
        while (name.startsWith(".")) { // hidden, or a folder
            name = name.substring(1);
        }
        if (name.length() > LONGEST) { // the end of a name says what it is
            name = name.substring(name.length() - LONGEST);
        }
        return name.isEmpty() ? NAMELESS : name;
    }
}
