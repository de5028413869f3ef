package io.github.tributary.core;

/**
 * Tells apps of the proxy by the way the user chose, while it listens and no longer: apps that are sent to a proxy that is
 * not there are offline. Not safe for concurrent use.
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
     * Takes on what is so now: whether the proxy listens, whether it has a network, and what the user wants. The setting holds
     * for the system's own question whether a new network leads out: with it and without a network none would ever be found.
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

    /** Whether the user's permission for the setting is missing. */
    public boolean refused() {
        return refused;
    }
}
