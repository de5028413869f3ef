package io.github.tributary.core;

/**
 * Announces the proxy to apps in the way the user chose, but only while it listens: apps that are sent to an absent
 * proxy are offline. Not safe for concurrent use.
 */
public final class Announcer {
    /** A VPN that names the proxy. */
    public interface Bridge {
        void open();

        void close();
    }

    private final GlobalProxy setting;
    private final Bridge bridge;
    private boolean open;
    private boolean refused;

    public Announcer(GlobalProxy setting, Bridge bridge) {
        this.setting = setting;
        this.bridge = bridge;
    }

    /**
     * Applies the current state: whether the proxy listens, whether it has a network, and what the user wants. The
     * setting also applies to the system's own test of whether a new network leads to the internet: if the setting
     * stayed without a network, the system would never find one.
     */
    public void update(boolean listens, boolean online, Reach reach) {
        boolean vpn = listens && reach == Reach.VPN;
        if (vpn != open) {
            open = vpn;
            if (vpn) {
                bridge.open();
            } else {
                bridge.close();
            }
        }
        refused = false;
        try {
            if (listens && online && reach == Reach.SETTING) {
                setting.set();
            } else {
                setting.clear();
            }
        } catch (SecurityException e) {
            refused = true;
        }
    }

    /** Returns whether the user's permission for the setting is missing. */
    public boolean refused() {
        return refused;
    }
}
