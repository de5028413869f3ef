#!/usr/bin/env bash
# All tests. GO is the go command, DEBIAN the packages to install ("command:package ..."): see the Makefile.
set -uo pipefail
cd "$(dirname "$0")/.."
here=$PWD
GO=${GO:-go}
PATH=$PATH:/usr/sbin:/sbin

# Packages without goroutines have no races, and the lab's measure of time would be the detector's.
PLAIN='/internal/(arch|estimate|health|schedule|segment|transfer)$|/deploy$|/lab/(netlab|sim|cmd/tributary-lab)$'

# shellcheck source=tools/debian.sh
. tools/debian.sh
need_packages

race=-race
if [ "$($GO env CGO_ENABLED)" != 1 ] || ! command -v "$($GO env CC)" >/dev/null; then
	say 'No C compiler: the tests run without the race detector'
	race=
fi

sum=$(mktemp -d)
trap 'rm -rf "$sum"' EXIT

failed=0
# The app's core and its tests take a JDK, and Maven to fetch three small artifacts.
java=yes
if ! command -v javac >/dev/null || ! command -v mvn >/dev/null; then
	java='no JDK or no Maven here: apt-get install default-jdk-headless maven'
elif ! timeout 300 make -s -C android java-built >"$sum/java" 2>&1; then
	tail -n 5 "$sum/java" | sed 's/^/   /'
	java='its classes were not built: make -C android java-test'
fi
if [ "$java" = yes ]; then
	TRIBUTARY_JAVA=$(make -s -C android java-classpath)
	export TRIBUTARY_JAVA
	say "The app's core, in a JVM"
	make -s -C android java-test || failed=1
	if ! command -v aapt >/dev/null; then
		echo "android: the screens: aapt is not installed: apt-get install aapt" >>"$sum/skipped"
	elif timeout 240 make -s -C android screens-built >"$sum/java" 2>&1; then
		say 'The screens, on Robolectric'
		make -s -C android screens-test || failed=1
	else
		tail -n 5 "$sum/java" | sed 's/^/   /'
		echo "android: the screens: Robolectric and Android's classes (0.5 GB) were not fetched in 4 minutes: make -C android screens-test" >>"$sum/skipped"
	fi
else
	echo "android: $java" >>"$sum/skipped"
fi

# shellcheck disable=SC2086,SC2046 # lists of words
run() { (cd "$module" && $GO tool -modfile="$here/tools/go.mod" gotestsum --format pkgname -- -shuffle=on -timeout 20m "$@") || failed=1; }

for module in . lab; do
	say "go vet ./... in $module"
	$GO vet -C "$module" ./... || failed=1
	all=$($GO list -C "$module" ./...) || exit 1
	say "go test $race -shuffle=on in $module"
	run $race $(grep -vE "$PLAIN" <<<"$all")
	say "go test -shuffle=on in $module (packages without goroutines, and the lab)"
	run $(grep -E "$PLAIN" <<<"$all")
done

if [ -s "$sum/skipped" ]; then
	say "Skipped ($(wc -l <"$sum/skipped")):"
	sort "$sum/skipped" | sed 's/^/   /'
else
	say 'Nothing was skipped'
fi
[ "$failed" = 0 ] && say 'PASS' || say 'FAIL'
exit "$failed"
