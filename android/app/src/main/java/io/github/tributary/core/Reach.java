package io.github.tributary.core;

/** How other apps find the proxy. */
public enum Reach {
    /** The user configures them: in the settings of the Wi-Fi network, or of the app. */
    BY_HAND,
    /** The setting for all networks, which needs a permission granted through adb. */
    SETTING,
    /** A VPN that carries nothing and names the proxy. */
    VPN
}
