#!/usr/bin/env bash
# All tests. GO is the go command, DEBIAN the packages to install ("command:package ..."): see the Makefile.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
PATH=$PATH:/usr/sbin:/sbin

# shellcheck source=tools/debian.sh
. tools/debian.sh
need_packages

RACE=-race
if [ "$($GO env CGO_ENABLED)" != 1 ] || ! command -v "$($GO env CC)" >/dev/null; then
	say 'No C compiler: the tests run without the race detector'
	RACE=
fi
export GO RACE

sum=$(mktemp -d)
trap 'rm -rf "$sum"' EXIT

# android_changed reports whether android/ differs from where the branch left main; on main, from the commit before. Where
# git cannot tell, it does.
android_changed() {
	local base
	base=$(git merge-base HEAD main 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null) || return 0
	if [ "$base" = "$(git rev-parse HEAD)" ]; then
		base=$(git rev-parse -q --verify HEAD~1) || return 0
	fi
	[ -n "$(git status --porcelain -- android)" ] || ! git diff --quiet "$base" HEAD -- android
}

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
	if ! android_changed; then
		echo "the screens: android/ has not changed; make android-test runs them" >>"$sum/skipped"
	elif ! command -v aapt >/dev/null; then
		echo "the screens: aapt is not installed: apt-get install aapt" >>"$sum/skipped"
	elif timeout 240 make -s -C android screens-built >"$sum/java" 2>&1; then
		say 'The screens, on Robolectric: the oldest and the newest Android'
		make -s -C android screens-test-quick || failed=1
	else
		tail -n 5 "$sum/java" | sed 's/^/   /'
		echo "the screens: Robolectric and Android's classes (0.5 GB) were not fetched in 4 minutes: make -C android screens-test" >>"$sum/skipped"
	fi
else
	echo "all of it: $java" >>"$sum/skipped"
fi

for module in . lab; do
	say "go vet ./... in $module"
	$GO vet -C "$module" ./... || failed=1
done

say "go test $RACE"
$GO tool -modfile=tools/go.mod gotestsum --format pkgname --raw-command -- tools/gotest.sh || failed=1

if [ -s "$sum/skipped" ]; then
	say 'Not run of the app:'
	sed 's/^/   /' "$sum/skipped"
fi
if [ "$failed" = 0 ]; then say 'PASS'; else say 'FAIL'; fi
exit "$failed"
