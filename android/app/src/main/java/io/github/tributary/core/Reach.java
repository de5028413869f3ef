package io.github.tributary.core;

/** How other apps come to use the proxy. */
public enum Reach {
    /** The user tells them: in the settings of the Wi-Fi network, or of the app. */
    BY_HAND,
    /** The setting that holds for all networks, which takes a permission given by adb. */
    SETTING,
    /** A VPN that carries nothing and names the proxy. */
    VPN
}
