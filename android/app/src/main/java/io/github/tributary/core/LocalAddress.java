package io.github.tributary.core;

import java.net.URI;
import java.net.URISyntaxException;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Locale;

/**
 * Addresses on this phone through which players and other programs get https objects over all networks: see
 * docs/GATEWAY.md.
 */
public final class LocalAddress {
    private static final int TOKEN_BYTES = 18;

    private LocalAddress() {}

    /** Returns a token that nobody can guess. */
    public static String newToken() {
        byte[] b = new byte[TOKEN_BYTES];
        new SecureRandom().nextBytes(b);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(b);
    }

    /** Returns the address of an https URL at the gateway "address:port"; null if the URL has none. */
    public static String of(String gateway, String token, String url) {
        URI u;
        try {
            u = new URI(url);
        } catch (URISyntaxException e) {
            return null;
        }
        String host = u.getHost();
        if (!"https".equalsIgnoreCase(u.getScheme()) || host == null || u.getRawUserInfo() != null) {
            return null;
        }
        String port = u.getPort() < 0 ? "" : ":" + u.getPort();
        String path = u.getRawPath() == null || u.getRawPath().isEmpty() ? "/" : u.getRawPath();
        String query = u.getRawQuery() == null ? "" : "?" + u.getRawQuery();
        return "http://" + gateway + "/" + token + "/https/" + host.toLowerCase(Locale.ROOT) + port + path + query;
    }
}
