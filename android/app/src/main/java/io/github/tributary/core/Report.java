package io.github.tributary.core;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a user may send to the maintainers: what the program ran on and the ends of its logs, without what it was used
 * for.
 */
public final class Report {
    private static final int LAST = 32 * 1024; // bytes of each log; an intent holds less than 1 MB

    private static final Pattern LINK = Pattern.compile("[a-zA-Z][a-zA-Z0-9+.-]*://[^\\s\"]+");
    private static final Pattern IPV6 = Pattern.compile("(?<![0-9a-zA-Z:.\\])])(?!::1\\b)(?=[0-9a-fA-F]*:)(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?:/\\d+)?");
    private static final Pattern IPV4 = Pattern.compile("(?<![\\d.])(?!127\\.)\\d{1,3}(?:\\.\\d{1,3}){3}(?![\\d.])");

    /** A host name: letters after the last dot, unlike a version, and not a file's extension. */
    private static final Pattern NAME =
            Pattern.compile("(?<![\\w./-])(?:[\\w-]+\\.)+(?!(?:go|so|toml|sock|json|log|tmp)\\b)[a-zA-Z][a-zA-Z0-9-]+(?![\\w/(])");

    private static final String LOGGED = "time="; // how a log line begins; others are of a crash, which has dots too

    private Report() {}

    /** Builds a report that starts with the facts. A missing log is left out. */
    public static String of(List<String> facts, File... logs) {
        StringBuilder b = new StringBuilder();
        for (String fact : facts) {
            b.append(fact).append('\n');
        }
        for (File log : logs) {
            String text = last(log);
            if (!text.isEmpty()) {
                b.append('\n').append(text);
            }
        }
        StringBuilder hidden = new StringBuilder();
        for (String line : b.toString().split("\n", -1)) {
            hidden.append(hidden.length() == 0 ? "" : "\n").append(hide(line));
        }
        return hidden.toString();
    }

    /** Returns the log of the process before the one that writes this log. */
    public static File before(File log) {
        return new File(log.getPath() + ".1");
    }

    /**
     * Returns the line without links and addresses, and, if it is a line of the program itself, without names of
     * servers.
     */
    static String hide(String line) {
        String s = LINK.matcher(line).replaceAll("(link)");
        s = IPV6.matcher(s).replaceAll("(address)");
        s = IPV4.matcher(s).replaceAll("(address)");
        Matcher name = NAME.matcher(s);
        return line.startsWith(LOGGED) ? name.replaceAll("(name)") : s;
    }

    /** Returns the last lines of a file; "" = there are none. */
    private static String last(File log) {
        try (RandomAccessFile f = new RandomAccessFile(log, "r")) {
            long skipped = Math.max(0, f.length() - LAST);
            byte[] bytes = new byte[(int) (f.length() - skipped)];
            f.seek(skipped);
            f.readFully(bytes);
            String text = new String(bytes, StandardCharsets.UTF_8);
            return skipped == 0 ? text : text.substring(text.indexOf('\n') + 1);
        } catch (IOException e) { // never written, or being recreated
            return "";
        }
    }
}
