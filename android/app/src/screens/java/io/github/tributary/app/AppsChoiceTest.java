package io.github.tributary.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.AlertDialog;
import android.content.ComponentName;
import android.content.DialogInterface;
import android.content.Intent;
import android.content.IntentFilter;
import android.content.pm.ApplicationInfo;
import android.content.pm.PackageInfo;
import android.net.ConnectivityManager;
import android.os.Build;
import android.os.Looper;
import android.widget.TextView;
import io.github.tributary.R;
import io.github.tributary.core.AppAccess;
import io.github.tributary.core.HostSession;
import io.github.tributary.core.Reach;
import java.net.InetSocketAddress;
import java.util.Collections;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowAlertDialog;
import org.robolectric.shadows.ShadowConnectivityManager;
import org.robolectric.shadows.ShadowPackageManager;

/** Other apps use mobile data through the proxy only if the user agreed. */
@RunWith(RobolectricTestRunner.class)
public class AppsChoiceTest {
    private static final String BROWSER = "org.example.browser";
    private static final int UID = 10200;

    private MainActivity screen;
    private Settings settings;

    @Before
    public void open() throws Exception {
        ShadowPackageManager packages = shadowOf(RuntimeEnvironment.getApplication().getPackageManager());
        PackageInfo p = new PackageInfo();
        p.packageName = BROWSER;
        p.applicationInfo = new ApplicationInfo();
        p.applicationInfo.packageName = BROWSER;
        p.applicationInfo.uid = UID;
        p.applicationInfo.nonLocalizedLabel = "Browser";
        packages.installPackage(p);
        ComponentName main = new ComponentName(BROWSER, "Main");
        packages.addActivityIfNotPresent(main);
        IntentFilter launcher = new IntentFilter(Intent.ACTION_MAIN);
        launcher.addCategory(Intent.CATEGORY_LAUNCHER);
        packages.addIntentFilterForActivity(main, launcher);
        screen = Robolectric.buildActivity(MainActivity.class).setup().get();
        settings = new Settings(screen);
    }

    private AppAccess access() {
        return AppsChoice.access(screen, settings);
    }

    private static AlertDialog dialog() {
        return (AlertDialog) ShadowAlertDialog.getLatestDialog();
    }

    private AlertDialog choose(int item) {
        screen.findViewById(R.id.apps).performClick();
        shadowOf(dialog()).clickOnItem(item);
        shadowOf(Looper.getMainLooper()).idle();
        return dialog();
    }

    private static void press(AlertDialog d, int button) {
        d.getButton(button).performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    @Test
    public void nobodyMayAtFirst() {
        assertEquals(AppAccess.Choice.NONE, access().choice);
        assertEquals("Mobile data for other apps: none", ((TextView) screen.findViewById(R.id.apps)).getText().toString());
    }

    @Test
    public void allIsAskedAboutFirst() {
        AlertDialog question = choose(1);
        assertEquals("before the answer", AppAccess.Choice.NONE, access().choice);
        press(question, DialogInterface.BUTTON_NEGATIVE);
        assertEquals("refused", AppAccess.Choice.NONE, access().choice);
        press(choose(1), DialogInterface.BUTTON_POSITIVE);
        assertEquals(AppAccess.Choice.ALL, access().choice);
        choose(0);
        assertEquals(AppAccess.Choice.NONE, access().choice);
    }

    @Test
    public void appsAreChosenWhereTheSystemTellsThemApart() {
        settings.setReach(Reach.VPN);
        screen.findViewById(R.id.apps).performClick();
        boolean told = Build.VERSION.SDK_INT >= 29;
        assertEquals(told ? 3 : 2, shadowOf(dialog()).getItems().length);
        dialog().dismiss();
        if (told) {
            AlertDialog which = choose(2);
            shadowOf(which).clickOnItem(0);
            press(which, DialogInterface.BUTTON_POSITIVE);
        } else {
            settings.setApps(AppAccess.Choice.CHOSEN, Collections.singleton(BROWSER)); // from a later Android
        }
        assertEquals(told ? AppAccess.Choice.CHOSEN : AppAccess.Choice.NONE, access().choice);
        assertEquals(told ? Collections.singleton(UID) : Collections.<Integer>emptySet(), access().uids);
        settings.setReach(Reach.SETTING);
        assertEquals("by another way nobody is told apart", AppAccess.Choice.NONE, access().choice);
        screen.findViewById(R.id.apps).performClick();
        assertEquals(2, shadowOf(dialog()).getItems().length);
    }

    @Test
    public void anAppThatIsGoneIsNobody() {
        settings.setReach(Reach.VPN);
        settings.setApps(AppAccess.Choice.CHOSEN, Collections.singleton("org.example.gone"));
        assertTrue(access().uids.isEmpty());
    }

    /** What Android reports about the owner of a connection. */
    @Implements(ConnectivityManager.class)
    public static class Owners extends ShadowConnectivityManager {
        static boolean ours; // the VPN

        @Implementation(minSdk = 29)
        protected int getConnectionOwnerUid(int protocol, InetSocketAddress local, InetSocketAddress remote) {
            if (!ours) {
                throw new SecurityException("not the active VPN");
            }
            boolean known = protocol == 6 && local.getPort() == 40123 && remote.getPort() == 8080 && remote.getAddress().isLoopbackAddress();
            return known ? UID : -1;
        }
    }

    @Test
    @Config(shadows = Owners.class)
    public void theSystemSaysWhoseAConnectionIs() throws Exception {
        NetworkHost host = new NetworkHost();
        assertEquals("not begun", HostSession.NOBODY, host.owner("127.0.0.1:40123", "127.0.0.1:8080"));
        host.begin((ConnectivityManager) screen.getSystemService(MainActivity.CONNECTIVITY_SERVICE));
        Owners.ours = false;
        assertEquals("another VPN", HostSession.NOBODY, host.owner("127.0.0.1:40123", "127.0.0.1:8080"));
        Owners.ours = true;
        assertEquals(Build.VERSION.SDK_INT >= 29 ? UID : HostSession.NOBODY, host.owner("127.0.0.1:40123", "127.0.0.1:8080"));
        assertEquals(HostSession.NOBODY, host.owner("127.0.0.1:40124", "127.0.0.1:8080"));
        InetSocketAddress six = NetworkHost.address("[2001:db8::1]:443");
        assertEquals(443, six.getPort());
        assertFalse(six.isUnresolved());
    }
}
