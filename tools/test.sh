#!/usr/bin/env bash
# All tests. GO is the go command, DEBIAN the packages to install ("command:package ..."): see the Makefile.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
PATH=$PATH:/usr/sbin:/sbin

# Packages without goroutines have no races, and the lab's measure of time would be the detector's.
PLAIN='/internal/(arch|estimate|health|lab|schedule|segment|sim|transfer)$|/cmd/tributary-lab$'

say() { printf '== %s\n' "$*"; }

missing() {
	local item
	for item in ${DEBIAN:-}; do
		command -v "${item%%:*}" >/dev/null || dpkg -s "${item#*:}" >/dev/null 2>&1 || echo "${item#*:}"
	done
}

# install_packages installs without questions and without starting a service (policy-rc.d, invoke-rc.d(8)).
install_packages() {
	local policy=/usr/sbin/policy-rc.d made='' log package failed=''
	log=$(mktemp)
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made=yes
	fi
	export DEBIAN_FRONTEND=noninteractive
	timeout 300 apt-get update -q >"$log" 2>&1 </dev/null
	for package in "$@"; do # one by one, so that one that is not to be had does not keep the others out
		timeout 600 apt-get install -q -y --no-install-recommends "$package" >>"$log" 2>&1 </dev/null || failed+=" $package"
	done
	[ -n "$made" ] && rm -f "$policy"
	if [ -n "$failed" ]; then
		say "apt-get could not install:$failed. Its last lines:"
		tail -n 8 "$log" | sed 's/^/   /'
		say "The tests that need them are skipped. With a network: apt-get update && apt-get install$failed"
	fi
	rm -f "$log"
}

mapfile -t need < <(missing)
if [ "${#need[@]}" -gt 0 ]; then
	if [ "$(id -u)" != 0 ]; then
		say "Not root: the tests that need these packages are skipped: ${need[*]}"
	elif ! command -v apt-get >/dev/null; then
		say "No apt-get here: the tests that need these packages are skipped: ${need[*]}"
	else
		say "Installing ${need[*]}"
		install_packages "${need[@]}"
	fi
fi

race=-race
if [ "$($GO env CGO_ENABLED)" != 1 ] || ! command -v "$($GO env CC)" >/dev/null; then
	say 'No C compiler: the tests run without the race detector'
	race=
fi

sum=$(mktemp -d)
trap 'rm -rf "$sum"' EXIT
(cd tools && $GO test ./testsum && $GO build -o "$sum/testsum" ./testsum) || exit 1

failed=0
say 'go vet ./...'
$GO vet ./... || failed=1

all=$($GO list ./...) || exit 1
# shellcheck disable=SC2086,SC2046 # lists of words
run() { $GO test -json -shuffle=on -timeout 20m "$@" 2>&1 | "$sum/testsum" "$sum/skipped" || failed=1; }

say "go test $race -shuffle=on"
run $race $(grep -vE "$PLAIN" <<<"$all")
say 'go test -shuffle=on (packages without goroutines, and the lab)'
run $(grep -E "$PLAIN" <<<"$all")

if [ -s "$sum/skipped" ]; then
	say "Skipped ($(wc -l <"$sum/skipped")):"
	sort "$sum/skipped" | sed 's/^/   /'
else
	say 'Nothing was skipped'
fi
[ "$failed" = 0 ] && say 'PASS' || say 'FAIL'
exit "$failed"
