package io.github.tributary.core;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The link with which a relay admits a client, as `tributary relay pair` prints it. Anybody who knows it can use the
 * relay, so the text form of this class hides the secret. A value.
 */
public final class Invitation {
    // A question shows the host, and anybody may write a link: no characters that change its direction, look like
    // others, or make it a sentence.
    private static final Pattern LINK =
            Pattern.compile("(?i)\\btributary://(\\[[0-9a-f:.]{2,45}\\]|[0-9a-z._-]{1,253}):([0-9]{1,5})#([\\w-]{43})\\.([\\w-]{32})(?![\\w-])");

    /** "host:port" of the relay. */
    public final String address;

    /** The relay's name or address, for people. */
    public final String host;

    /** The identity of the relay's key, which is not secret. */
    public final String key;

    private final String secret;

    private Invitation(String host, String port, String key, String secret) {
        this.host = host;
        this.address = host + ":" + port;
        this.key = key;
        this.secret = secret;
    }

    /** Returns the first such link in a text; null if there is none. */
    public static Invitation in(CharSequence text) {
        if (text == null) {
            return null;
        }
        Matcher m = LINK.matcher(text);
        return m.find() ? new Invitation(m.group(1), m.group(2), m.group(3), m.group(4)) : null;
    }

    /** Returns whether a text is meant to be such a link, complete or not. */
    public static boolean begins(CharSequence text) {
        return text != null && text.toString().trim().regionMatches(true, 0, "tributary:", 0, 10);
    }

    /** The link: a secret, for the daemon only. */
    String link() {
        return "tributary://" + address + "#" + key + "." + secret;
    }

    @Override
    public String toString() {
        return "tributary://" + address + "#...";
    }
}
