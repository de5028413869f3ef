#!/bin/sh
# Removes what guards the user, a line at a time, in a copy of the app: its tests must notice. `make -C android mutate`.
set -eu
here=$(dirname "$(readlink -f "$0")")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
missed=0

# try TARGET FILE OLD NEW: the tests of TARGET must fail with NEW instead of OLD.
try() {
	rm -rf "$copy/android"
	mkdir "$copy/android"
	cp -r "$here/Makefile" "$here/fetch.sh" "$here/pom.xml" "$here/app" "$copy/android/"
	file=$copy/android/app/src/main/java/io/github/tributary/$2
	python3 - "$file" "$3" "$4" <<'PY'
import sys
path, old, new = sys.argv[1:]
text = open(path).read()
if text.count(old) != 1:
    sys.exit(f"{path} holds {old!r} {text.count(old)} times, want once")
open(path, "w").write(text.replace(old, new))
PY
	if timeout 300 make -s -C "$copy/android" LEVELS=35 "$1" >"$copy/said" 2>&1; then
		echo "NOT NOTICED: $2: $3"
		missed=$((missed + 1))
	elif ! grep -q '^There w' "$copy/said"; then
		echo "NO TEST RAN: $2: $3"
		tail -5 "$copy/said"
		missed=$((missed + 1))
	else
		echo "noticed: $2: $3 ($(grep -o '^[0-9]*) [a-zA-Z]*' "$copy/said" | sed 's/.*) //' | sort -u | head -3 | tr '\n' ' '))"
	fi
}

try java-test core/MobilePolicy.java 'return consent &&' 'return'
try java-test core/Net.java 'kind == Kind.OTHER || is(Trait.METERED)' 'false'
try java-test core/Net.java '&& !is(Trait.CAPTIVE)' ''
try java-test core/Offer.java 'n.costs() && !policy.mobileAllowed()' 'n.kind == Net.Kind.CELLULAR && !policy.mobileAllowed()'
try java-test core/Offer.java 'n.is(Net.Trait.ROAMING) && !policy.roaming' 'false'
try java-test core/Offer.java 'n.costs() && saving' 'false'
try java-test core/Offer.java '        if (!n.usable()) {' '        if (false) {'
try java-test core/Offer.java '&& !silent.contains(n.name)' ''
try java-test core/Offer.java 'policy.mobileAllowed() && !saving &&' 'policy.mobileAllowed() &&'
try java-test core/HostMessages.java 'put(o, "monthly_bytes", limits.monthlyBytes);' ''
try java-test core/HostMessages.java 'put(o, "daily_bytes", limits.dailyBytes);' ''
try java-test core/HostMessages.java 'accounts.add(Net.account(sim));' ''
try java-test core/Warnings.java 'PERCENT = 80' 'PERCENT = 100'
try screens-test app/LinkWatcher.java 'all.add(Net.Trait.ROAMING);' ''
try screens-test app/LinkWatcher.java 'table.blocked(network.getNetworkHandle(), blocked);' ''
try screens-test app/LinkWatcher.java 'TEST_MILLIS = 15_000' 'TEST_MILLIS = 0'
try screens-test app/ProxyService.java 'manager.getRestrictBackgroundStatus() == ConnectivityManager.RESTRICT_BACKGROUND_STATUS_ENABLED' 'false'
try screens-test app/ProxyService.java 'if (!warned.contains(e.getKey()))' 'if (true)'
try java-test core/NetworkTable.java 'lost.contains(handle)' 'false'
try java-test core/NetworkTable.java '&& !e.told.contains(Net.Trait.CAPTIVE)' ''
try java-test core/GlobalProxy.java 'memory.remember(now == null ? "" : now);' ''
try java-test core/GlobalProxy.java 'ours.equals(setting.read())' 'true'
try java-test core/Announcer.java 'listens && online && reach' 'reach'
try java-test core/DownloadState.java 'return s.active() ? s.interrupted() : s;' 'return s;'
try java-test core/DownloadState.java '&& rounds < MOST_ROUNDS' ''
try java-test core/DownloadState.java 'return bytes == 0 || !version.validator.isEmpty();' 'return true;'
try java-test core/DownloadJob.java 'again ? state().brokenOff(text(e)) :' ''
try screens-test app/App.java 'shown.mend(app.downloads);' ''
try java-test core/DownloadJob.java 'state().emptied().with(' 'state().with('
try screens-test app/Store.java 'if (resolver.update(uri, v, null, null) == 0) {' 'if (false) {'
try screens-test app/Store.java '            if (!part.exists()) {' '            if (false) {'
try screens-test app/Store.java 'if (StoragePermission.given(context)) {' 'if (false) {'
try screens-test app/Store.java 'type(s.name).equals(APK)' 'false'
try screens-test app/DownloadedFiles.java '!mode.equals("r")' 'false'
try screens-test app/ShareActivity.java 'if (StoragePermission.ask(ShareActivity.this)) {' 'if (false) {'
try screens-test app/MainActivity.java 'downloads.ask(e);' 'App.downloads(this).remove(e);'
try screens-test app/Resumption.java '.setPersisted(true)' ''
try screens-test app/ProxyService.java 'App.downloads(this).online();' ''
try java-test core/Fetches.java 'wasStopped() ? null : ' ''
try java-test core/HostMessages.java 'put(o, "validator", s.version.validator);' ''
try screens-test app/App.java '            proxy.clear();' ''
try screens-test app/App.java 'proxy.end();' ''
try screens-test app/ProxyService.java '        status = null;
        wanted = false;' '        wanted = false;'
try screens-test app/ProxyService.java 'announcer.update(false, false, settings.reach());' ''
try screens-test app/ProxyService.java 'settings.run() ? START_STICKY : START_NOT_STICKY' 'START_NOT_STICKY'
try screens-test app/ProxyService.java 'status != null && settings.run()' 'status != null'
try screens-test app/ProxyService.java 'Restart.plan(this);' ''
try screens-test app/Restart.java '!ProxyService.runs() && !ProxyService.start(this)' 'false'
try screens-test app/App.java 'ended = LastEnd.line(this);' ''
try screens-test app/LastEnd.java 'settings.beganBoot() != boots(context)' 'false'
try screens-test app/VpnBridge.java '                .allowBypass()
' ''
try screens-test app/VpnBridge.java 'host, port, NEARBY' 'host, port'
try screens-test app/MobileChoice.java 'settings.policy().consent' 'true'
try screens-test app/ShareActivity.java '            ask(url, host);' '            download(url);'
try screens-test app/ShareActivity.java 'setFilterTouchesWhenObscured(true)' 'setFilterTouchesWhenObscured(false)'
try screens-test app/Texts.java '!policy.mobileAllowed()' 'false'
try screens-test app/MainActivity.java 'START.equals(' 'getIntent().getAction() != null || START.equals('
try java-test core/DaemonProcess.java 'log.renameTo(Report.before(log));' ''
try java-test core/Report.java 's = IPV6.matcher(s).replaceAll("(address)");' ''
try java-test core/Report.java 'line.startsWith(LOGGED) ?' 'false ?'
try screens-test app/LogActivity.java 'state == null ?' 'true ?'
try screens-test app/Awake.java '            wifi.acquire();' ''
try screens-test app/ProxyService.java 'awake.hold(); // or it waits' '// or it waits'
try screens-test app/Texts.java 'l.monthlyLeft == 0 ?' 'false ?'
try screens-test app/BootReceiver.java 'if (settings.onBoot())' 'if (true)'
[ $missed = 0 ]
