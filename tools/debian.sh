# shellcheck shell=bash
# The Debian packages that tests need. DEBIAN is a list of "command:package", "-:package" for one without a command.

say() { printf '== %s\n' "$*"; }

missing() {
	local item
	for item in ${DEBIAN:-}; do
		command -v "${item%%:*}" >/dev/null || dpkg -s "${item#*:}" >/dev/null 2>&1 || echo "${item#*:}"
	done
}

# apt runs apt-get without questions and waits for whoever holds its locks, such as unattended-upgrades after a boot.
# DPkg::Lock::Timeout covers only the locks of dpkg, not those of the lists and the archives. The output is in $log.
apt() {
	local end=$((SECONDS + 600))
	while ! DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" >"$log.last" 2>&1 </dev/null; do
		cat "$log.last" >>"$log"
		grep -q 'Could not get lock' "$log.last" && [ "$SECONDS" -lt "$end" ] || return 1
		sleep 2
	done
}

# install_packages installs without starting a service (policy-rc.d, invoke-rc.d(8)).
install_packages() {
	local policy=/usr/sbin/policy-rc.d made='' log package failed=''
	log=$(mktemp)
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made=yes
	fi
	apt update || true # what is known already may be enough
	if ! apt install --no-install-recommends "$@"; then
		for package in "$@"; do # one by one, so that one that is missing does not keep the others out
			apt install --no-install-recommends "$package" || failed+=" $package"
		done
	fi
	[ -n "$made" ] && rm -f "$policy"
	if [ -n "$failed" ]; then
		say "apt-get could not install:$failed. Its last lines:"
		tail -n 8 "$log" | sed 's/^/   /'
		say "The tests that need them are skipped. With a network: apt-get update && apt-get install$failed"
	fi
	rm -f "$log" "$log.last"
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
