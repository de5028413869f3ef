#!/bin/bash
# The module in a chroot that looks like a phone's root, under each shell that root managers use: MODULE.zip, LINKER (an
# arm64 dynamic loader) and qemu-aarch64-static run the real binary, iptables the real rules in a network namespace of its
# own. Nothing outlives the run: processes and mounts end with its namespaces.
set -eu
zip=$1 linker=$2
if [ -z "${MODULE_TEST_INSIDE:-}" ]; then
	root=$(mktemp -d /tmp/tributary-module-XXXXXX)
	status=0
	MODULE_TEST_INSIDE=$root unshare -n -m -p -f --kill-child --mount-proc "$0" "$@" || status=$?
	rm -rf --one-file-system "$root"
	exit $status
fi

fail() {
	echo "FAIL ($shell): $*" >&2
	pgrep -af tributary.arm64 >&2 || true
	[ ! -e "$root/data/adb/tributary/log" ] || sed 's/^/   log: /' "$root/data/adb/tributary/log" >&2
	exit 1
}
inside() { chroot "$root" /bin/env -i PATH=/bin:/sbin "$@"; }
rules() { inside /sbin/iptables -t nat -S | grep -i tributary || true; }
waitfor() { # what, command...
	local what=$1 n=100
	shift
	until "$@"; do
		n=$((n - 1))
		[ $n -gt 0 ] || fail "in vain: $what"
		sleep 0.1
	done
}
no_rules() { [ -z "$(rules)" ]; }
no_processes() { ! pgrep -f 'tributary.arm64' >/dev/null; }

# add copies a program with the libraries that it needs.
add() {
	local program=$1 to=$2 lib
	cp "$(readlink -f "$(command -v "$program")")" "$root/$to"
	for lib in $(ldd "$(command -v "$program")" 2>/dev/null | grep -o '/[^ ]*'); do
		mkdir -p "$root/$(dirname "$lib")"
		[ -e "$root/$lib" ] || cp -L "$lib" "$root/$lib"
	done
}

# phone makes the root of a phone.
phone() {
	root=$MODULE_TEST_INSIDE/$shell
	mkdir -p "$root"/{bin,sbin,dev,proc,tmp,system/bin,data/system,data/adb/magisk,usr/lib/x86_64-linux-gnu}
	cp "$(command -v busybox)" "$root/bin/busybox"
	chroot "$root" /bin/busybox --install -s /bin
	mount -t proc proc "$root/proc"
	mount --bind /dev "$root/dev"
	cp "$(command -v qemu-aarch64-static)" "$root/bin/qemu"
	install -m 0755 "$linker" "$root/system/bin/linker64"
	if [ "$shell" = ash ]; then
		ln -s /bin/busybox "$root/system/bin/sh" # argv[0] chooses the applet
	else
		add "$shell" system/bin/sh
	fi
	for tool in iptables iptables-restore ip6tables ip6tables-restore; do
		add "$tool" "sbin/$tool"
	done
	cp -r "$(dirname "$(find /usr/lib -name libxt_owner.so | head -1)")" "$root/usr/lib/x86_64-linux-gnu/xtables"
	cat >"$root/bin/getprop" <<-'STUB'
		#!/bin/busybox sh
		# The system has booted when it is asked for the second time.
		[ "$1" = persist.sys.timezone ] && echo Asia/Tokyo
		[ "$1" = sys.boot_completed ] || exit 0
		[ -e /tmp/booted ] && echo 1
		: >/tmp/booted
	STUB
	cat >"$root/bin/settings" <<-'STUB'
		#!/bin/busybox sh
		echo "$*" >>/tmp/settings
		[ "$1" = get ] && echo null
		exit 0
	STUB
	cat >"$root/data/adb/magisk/util_functions.sh" <<-'STUB'
		# What the test needs of an installer.
		abort() { ui_print "$1"; exit 1; }
		set_perm() { chown "$2:$3" "$1" && chmod "$4" "$1"; }
		install_module() {
			MODPATH=/data/adb/modules/tributary
			rm -rf "$MODPATH"
			mkdir -p "$MODPATH"
			unzip -oq "$ZIPFILE" -x 'META-INF/*' -d "$MODPATH"
			. "$MODPATH/customize.sh"
		}
	STUB
	chmod 0755 "$root/bin/getprop" "$root/bin/settings"
	printf '%s\n' 'com.example.a 10123 0 /data/user/0/com.example.a' 'com.example.b 10200 0 /data/user/0/com.example.b' \
		>"$root/data/system/packages.list"
	cp "$zip" "$root/tmp/module.zip"
}

# install runs the installer for an architecture.
install_for() {
	unzip -oqj "$zip" META-INF/com/google/android/update-binary -d "$root/tmp"
	inside ARCH="$1" API="$2" /system/bin/sh /tmp/update-binary 3 1 /tmp/module.zip
}

ip link set lo up
for shell in dash ash mksh; do
	phone
	for wrong in 'arm 30' 'x64 30' 'arm64 25'; do
		# shellcheck disable=SC2086
		if said=$(install_for $wrong); then fail "it installs for $wrong"; fi
		case $said in *'! Tributary'*) ;; *) fail "for $wrong it says: $said" ;; esac
	done
	install_for arm64 30 >/dev/null || fail "it does not install"
	module=/data/adb/modules/tributary
	data=$root/data/adb/tributary
	[ -x "$root/$module/bin/tributary" ] || fail "no program is installed"
	[ -e "$data/config.toml" ] || fail "no configuration is installed"
	echo '# mine' >>"$data/config.toml"
	install_for arm64 30 >/dev/null || fail "it does not install over itself"
	grep -q '# mine' "$data/config.toml" || fail "an update loses the configuration"

	mv "$root/$module/bin/tributary" "$root/$module/bin/tributary.arm64"
	printf '#!/bin/busybox sh\n# qemu-user at times hangs in a fork beside other threads.\nexport GODEBUG=asyncpreemptoff=1 GOMAXPROCS=1\nexec /bin/qemu %s/bin/tributary.arm64 "$@"\n' $module >"$root/$module/bin/tributary"
	chmod 0755 "$root/$module/bin/tributary"
	echo com.example.b >>"$data/deny.txt"

	inside /system/bin/sh $module/service.sh || fail "service.sh: $?"
	rules_are() { rules | grep -q -e "$1"; }
	waitfor "rules for apps" rules_are '--uid-owner 10000-19999.*REDIRECT'
	rules_are '--uid-owner 10200 -j RETURN' || fail "deny.txt does not count: $(rules)"
	grep -q 'put global mobile_data_always_on 1' "$root/tmp/settings" || fail "mobile data: $(cat "$root/tmp/settings")"
	[ -d "/proc/$(cat "$data/pid")" ] || fail "the proxy does not run"
	grep -q '^time=.*+09:00 ' "$data/log" || fail "months begin elsewhere: $(head -1 "$data/log")"

	said=$(inside /system/bin/sh $module/action.sh) || fail "action.sh: $?"
	case $said in *'is stopped'*) ;; *) fail "action.sh says: $said" ;; esac
	waitfor "rules go with action.sh" no_rules
	waitfor "processes end with action.sh" no_processes
	echo com.example.a >>"$data/allow.txt"
	said=$(inside /system/bin/sh $module/action.sh) || fail "action.sh: $?"
	case $said in *'Tributary runs'*) ;; *) fail "action.sh says: $said" ;; esac
	waitfor "rules for one app" rules_are '--uid-owner 10123.*REDIRECT'

	kill -9 "$(cat "$data/pid")"
	waitfor "rules go with the proxy's death" no_rules
	inside /system/bin/sh $module/service.sh || fail "service.sh again: $?"
	waitfor "rules again" rules_are REDIRECT

	inside /system/bin/sh $module/uninstall.sh || fail "uninstall.sh: $?"
	waitfor "rules go with the module" no_rules
	waitfor "processes end with the module" no_processes
	[ ! -e "$data" ] || fail "it leaves $(ls -a "$data")"
	tail -n 1 "$root/tmp/settings" | grep -q 'delete global mobile_data_always_on' || fail "settings: $(cat "$root/tmp/settings")"
	umount "$root/proc" "$root/dev"
	echo "ok: $shell"
done
