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
	if timeout 300 make -s -C "$copy/android" "$1" >"$copy/said" 2>&1; then
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
try java-test core/MobilePolicy.java 'n.usable()' 'true'
try java-test core/HostMessages.java 'put(o, "monthly_bytes", policy.monthlyBytes);' ''
try java-test core/NetworkTable.java 'lost.contains(handle)' 'false'
try java-test core/NetworkTable.java '&& !e.captive' ''
try java-test core/GlobalProxy.java 'memory.remember(now == null ? "" : now);' ''
try java-test core/GlobalProxy.java 'ours.equals(setting.read())' 'true'
try java-test core/Announcer.java 'listens && online && reach' 'reach'
try java-test core/DownloadState.java 'return s.active() ? s.in(Phase.PAUSED, "") : s;' 'return s;'
try java-test core/Fetches.java 'wasStopped() ? null : ' ''
try java-test core/HostMessages.java 'put(o, "validator", s.version.validator);' ''
try screens-test app/App.java '            proxy.clear();' ''
try screens-test app/App.java 'proxy.end();' ''
try screens-test app/ProxyService.java '        status = null;
        wanted = false;' '        wanted = false;'
try screens-test app/ProxyService.java 'announcer.update(false, false, settings.reach());' ''
try screens-test app/ProxyService.java 'settings.run() ? START_STICKY : START_NOT_STICKY' 'START_NOT_STICKY'
try screens-test app/MobileChoice.java 'settings.policy().consent' 'true'
try screens-test app/ShareActivity.java '            ask(url, host);' '            download(url);'
try screens-test app/ShareActivity.java 'setFilterTouchesWhenObscured(true)' 'setFilterTouchesWhenObscured(false)'
try screens-test app/Texts.java '!policy.mobileAllowed()' 'false'
try screens-test app/MainActivity.java 'START.equals(' 'getIntent().getAction() != null || START.equals('
try screens-test app/BootReceiver.java 'if (settings.onBoot())' 'if (true)'
[ $missed = 0 ]
