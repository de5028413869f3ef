package io.github.tributary.app;

import android.content.Context;
import android.content.SharedPreferences;
import io.github.tributary.core.AppAccess;
import io.github.tributary.core.GlobalProxy;
import io.github.tributary.core.Limits;
import io.github.tributary.core.LocalAddress;
import io.github.tributary.core.MobilePolicy;
import io.github.tributary.core.Reach;
import java.util.Collections;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;

/** The user's settings, stored by the system. */
final class Settings {
    private static final String MODE = "mode";
    private static final String CONSENT = "consent";
    private static final String MONTHLY = "monthly_bytes";
    private static final String DAILY = "daily_bytes";
    private static final String FIRST_DAY = "first_day";
    private static final String ROAMING = "roaming";
    private static final String WARNED = "warned";
    private static final String ON_BOOT = "on_boot";
    private static final String REACH = "reach";
    private static final String REPLACED = "replaced_proxy";
    private static final String RUN = "run";
    private static final String WELCOMED = "welcomed";
    private static final String AROUND = "around";
    private static final String APPS = "apps";
    private static final String CHOSEN = "chosen_apps";
    private static final String RELAY = "relay";
    private static final String RELAY_KEY = "relay_key "; // followed by the address
    private static final String IN_BATTERY_SAVER = "in_battery_saver";
    private static final String GIVEN = "gateway_given";
    static final String GATEWAY = "gateway_token";
    private static final String BEGAN = "began";
    private static final String BEGAN_BOOT = "began_boot";

    private final SharedPreferences prefs;

    Settings(Context context) {
        prefs = context.getSharedPreferences("settings", Context.MODE_PRIVATE);
    }

    MobilePolicy policy() {
        MobilePolicy.Mode mode;
        try {
            mode = MobilePolicy.Mode.valueOf(prefs.getString(MODE, MobilePolicy.Mode.WIFI_ONLY.name()));
        } catch (IllegalArgumentException e) { // written by another version
            mode = MobilePolicy.Mode.WIFI_ONLY;
        }
        return new MobilePolicy(mode, prefs.getBoolean(CONSENT, false), prefs.getBoolean(ROAMING, false), limits());
    }

    private Limits limits() {
        int first = Math.min(31, Math.max(1, prefs.getInt(FIRST_DAY, 1)));
        return new Limits(Math.max(0, prefs.getLong(MONTHLY, 0)), Math.max(0, prefs.getLong(DAILY, 0)), first);
    }

    void setMode(MobilePolicy.Mode mode) {
        prefs.edit().putString(MODE, mode.name()).apply();
    }

    void setConsent(boolean given) {
        prefs.edit().putBoolean(CONSENT, given).apply();
    }

    void setRoaming(boolean allowed) {
        prefs.edit().putBoolean(ROAMING, allowed).apply();
    }

    /** Returns whether mobile data helps Wi-Fi although the system's Battery Saver is on. */
    boolean inBatterySaver() {
        return prefs.getBoolean(IN_BATTERY_SAVER, false);
    }

    void setInBatterySaver(boolean allowed) {
        prefs.edit().putBoolean(IN_BATTERY_SAVER, allowed).apply();
    }

    /** Returns whether the user has said if mobile data may be used. */
    boolean mobileAnswered() {
        return prefs.contains(MODE) || prefs.contains(CONSENT);
    }

    void setLimits(Limits l) {
        prefs.edit().putLong(MONTHLY, l.monthlyBytes).putLong(DAILY, l.dailyBytes).putInt(FIRST_DAY, l.firstDay).apply();
    }

    /** Returns the limits that the user was warned about. */
    Set<String> warned() {
        return prefs.getStringSet(WARNED, Collections.<String>emptySet());
    }

    void setWarned(Set<String> names) {
        prefs.edit().putStringSet(WARNED, new HashSet<String>(names)).apply();
    }

    boolean onBoot() {
        return prefs.getBoolean(ON_BOOT, false);
    }

    void setOnBoot(boolean start) {
        prefs.edit().putBoolean(ON_BOOT, start).apply();
    }

    /** Returns whether the user has seen the first run, or used a version without one. */
    boolean welcomed() {
        return prefs.getBoolean(WELCOMED, prefs.contains(RUN) || prefs.contains(MODE));
    }

    void setWelcomed() {
        prefs.edit().putBoolean(WELCOMED, true).apply();
    }

    /** Returns whether the user has started the proxy and not stopped it. */
    boolean run() {
        return prefs.getBoolean(RUN, false);
    }

    void setRun(boolean run) {
        prefs.edit().putBoolean(RUN, run).apply();
    }

    /** Returns the apps that bypass the VPN. */
    Set<String> around() {
        return prefs.getStringSet(AROUND, VpnBridge.AROUND);
    }

    void setAround(Set<String> packages) {
        prefs.edit().putStringSet(AROUND, new HashSet<String>(packages)).apply();
    }

    /**
     * Stores the phone's boot count and the time at which the proxy started. They are on disk when the call returns.
     */
    void setBegan(int boot, long millis) {
        prefs.edit().putInt(BEGAN_BOOT, boot).putLong(BEGAN, millis).commit();
    }

    int beganBoot() {
        return prefs.getInt(BEGAN_BOOT, -1);
    }

    long beganMillis() {
        return prefs.getLong(BEGAN, 0);
    }

    /**
     * Returns which other apps may use networks that cost money, as the user chose: {@link AppAccess#of} decides what
     * applies.
     */
    AppAccess.Choice apps() {
        try {
            return AppAccess.Choice.valueOf(prefs.getString(APPS, AppAccess.Choice.NONE.name()));
        } catch (IllegalArgumentException e) { // written by another version
            return AppAccess.Choice.NONE;
        }
    }

    /** Returns the packages of the apps that the user chose. */
    Set<String> chosen() {
        return prefs.getStringSet(CHOSEN, Collections.<String>emptySet());
    }

    void setApps(AppAccess.Choice choice, Set<String> chosen) {
        prefs.edit().putString(APPS, choice.name()).putStringSet(CHOSEN, new HashSet<String>(chosen)).apply();
    }

    /** Returns the "host:port" of the last relay paired; "" = none. */
    String relay() {
        return prefs.getString(RELAY, "");
    }

    /**
     * Returns the identity of the key with which the relay at "host:port" was paired; "" = it was not paired, or by a
     * version that did not store it.
     */
    String relayKey(String address) {
        return prefs.getString(RELAY_KEY + address.toLowerCase(Locale.ROOT), "");
    }

    void setRelay(String address, String key) {
        prefs.edit().putString(RELAY, address).putString(RELAY_KEY + address.toLowerCase(Locale.ROOT), key).apply();
    }

    void forgetRelay(String address) {
        prefs.edit().remove(RELAY).remove(RELAY_KEY + address.toLowerCase(Locale.ROOT)).apply();
    }

    /** Returns the secret in local addresses, creating it on first use. */
    String gatewayToken() {
        String token = prefs.getString(GATEWAY, "");
        if (token.isEmpty()) {
            token = LocalAddress.newToken();
            prefs.edit().putString(GATEWAY, token).apply();
        }
        return token;
    }

    /** Makes a new secret: addresses with the old one no longer work. */
    void renewGatewayToken() {
        prefs.edit().putString(GATEWAY, LocalAddress.newToken()).putBoolean(GIVEN, false).apply();
    }

    /** Returns whether the user has copied a local address. */
    boolean addressGiven() {
        return prefs.getBoolean(GIVEN, false);
    }

    void setAddressGiven() {
        prefs.edit().putBoolean(GIVEN, true).apply();
    }

    /** Returns how other apps find the proxy. */
    Reach reach() {
        try {
            return Reach.valueOf(prefs.getString(REACH, Reach.BY_HAND.name()));
        } catch (IllegalArgumentException e) { // written by another version
            return Reach.BY_HAND;
        }
    }

    void setReach(Reach reach) {
        prefs.edit().putString(REACH, reach.name()).apply();
    }

    /** Returns the memory of the system's proxy before ours. It is on disk when a call returns. */
    static GlobalProxy.Memory replacedProxy(Context context) {
        final SharedPreferences prefs = context.getSharedPreferences("proxy", Context.MODE_PRIVATE); // not the user's
        return new GlobalProxy.Memory() {
            @Override
            public String before() {
                return prefs.getString(REPLACED, null);
            }

            @Override
            public void remember(String before) {
                prefs.edit().putString(REPLACED, before).commit();
            }

            @Override
            public void forget() {
                prefs.edit().remove(REPLACED).commit();
            }
        };
    }

    /** Makes l hear of every change, until forget. The caller must keep l: the system does not. */
    void listen(SharedPreferences.OnSharedPreferenceChangeListener l) {
        prefs.registerOnSharedPreferenceChangeListener(l);
    }

    void forget(SharedPreferences.OnSharedPreferenceChangeListener l) {
        prefs.unregisterOnSharedPreferenceChangeListener(l);
    }
}
