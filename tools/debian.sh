# shellcheck shell=bash
# The Debian packages that tests need. DEBIAN is a list of "command:package", "-:package" for one without a command.

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

# need_packages installs what is missing of DEBIAN, as root; what cannot be had only makes tests skip.
need_packages() {
	local need
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
}
