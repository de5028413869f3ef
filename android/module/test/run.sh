#!/bin/bash
# The module in a chroot that looks like a phone's root, under each shell that root managers use: MODULE.zip, LINKER (an
# arm64 dynamic loader) and qemu-aarch64-static run the real binary, iptables the real rules in a network namespace of its
# own. Under qemu nothing can ask where a redirected connection was going, so a download is redirected to NATIVE, the same
# program for this machine. Nothing outlives the run: processes and mounts end with its namespaces.
set -eu
zip=$1 linker=$2 native=$3
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
	local what=$1 n=300
	shift
	until "$@"; do
		n=$((n - 1))
		[ $n -gt 0 ] || fail "in vain: $what"
		sleep 0.1
	done
}
no_rules() { [ -z "$(rules)" ]; }
no_processes() { ! pgrep -f '[t]ributary (serve|redirect)|[t]ributary.arm64' >/dev/null; }

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
	mkdir -p "$root"/{bin,sbin,dev,proc,tmp,system/bin,data/system,data/user/{0,10},data/adb/magisk,data/misc,usr/lib/x86_64-linux-gnu}
	chmod 0700 "$root/data/adb" # as Magisk has it
	chown 1000:9998 "$root/data/misc" && chmod 01771 "$root/data/misc"
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
		# Before the system has booted there is no server for it.
		[ -e /tmp/booted ] || { echo "cmd: Can't find service: settings" >&2; exit 20; }
		echo "$*" >>/tmp/settings
		[ "$1" = get ] && echo null
		exit 0
	STUB
	cat >"$root/bin/dumpsys" <<-'STUB'
		#!/bin/busybox sh
		# What Android would say, once a test has it say something.
		[ "$*" = "-t 10 connectivity" ] && [ -e /tmp/dumpsys ] || { echo "Can't find service: connectivity" >&2; exit 20; }
		exec cat /tmp/dumpsys
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
	chmod 0755 "$root/bin/getprop" "$root/bin/settings" "$root/bin/dumpsys"
	printf '%s\n' 'com.example.a 10123 0 /data/user/0/com.example.a' 'com.example.b 10200 0 /data/user/0/com.example.b' \
		>"$root/data/system/packages.list"
	cp "$zip" "$root/tmp/module.zip"
}

# confined fails unless the proxy is a user of its own with these groups, CAP_NET_ADMIN and CAP_NET_RAW, in each of its threads.
confined() {
	local task said want
	for task in "/proc/$(cat "$data/pid")"/task/*/status; do
		said=$(tr -s '\t\n' '  ' <"$task")
		for want in 'Uid: 8080 8080 8080 8080 ' 'Gid: 8080 8080 8080 8080 ' "Groups: $1" 'CapPrm: 0000000000003000 ' \
			'CapEff: 0000000000003000 ' 'NoNewPrivs: 1 '; do
			case $said in *"$want"*) ;; *) fail "the proxy is not '$want': $said" ;; esac
		done
	done
	[ "$(stat -c %u:%g:%a "$state")" = 0:8080:750 ] || fail "the proxy may write where root does: $(ls -ld "$state")"
}

# origin serves an object at http://192.0.2.1/object, behind an interface called wlan0.
origin() {
	local far
	mkdir "$MODULE_TEST_INSIDE/origin"
	head -c 1000000 /dev/urandom >"$MODULE_TEST_INSIDE/origin/object"
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare -n sh -c 'until ip link set eth0 up 2>/dev/null; do sleep 0.1; done
		ip addr add 192.0.2.1/24 dev eth0
		exec busybox httpd -f -p 192.0.2.1:80 -h "$0"' "$MODULE_TEST_INSIDE/origin" &
	far=$!
	until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
	ip link add wlan0 type veth peer name eth0 netns $far
	ip addr add 192.0.2.2/24 dev wlan0
	ip link set wlan0 up
	ip route add default via 192.0.2.1
}

# object downloads it as an app that knows no proxy.
object() { setpriv --reuid=10123 --regid=10123 --clear-groups curl -sS --fail -m 20 --noproxy '*' http://192.0.2.1/object; }
# received prints how many bytes the proxy has of its one link.
received() { inside RUNTIME_DIRECTORY=/data/misc/tributary/run "$module"/bin/tributary status --once --json |
	grep -m 1 -o '"bytes": *[0-9]*' | grep -o '[0-9]*$'; }

# install runs the installer for an architecture.
install_for() {
	unzip -oqj "$zip" META-INF/com/google/android/update-binary -d "$root/tmp"
	inside ARCH="$1" API="$2" /system/bin/sh /tmp/update-binary 3 1 /tmp/module.zip
}

# says has Android say what one of the recorded versions does.
says() { cp "$here/dumpsys/$1" "$root/tmp/dumpsys.new" && mv "$root/tmp/dumpsys.new" "$root/tmp/dumpsys"; }
# script runs a line with the module's functions.
script() { inside /system/bin/sh -c "MODDIR=$module; . $module/common.sh; $1"; }

# networks_are_read tries what the module makes of Android's words.
networks_are_read() {
	local version got
	for version in android8 android10 android13 android16 none; do
		says $version
		got=$(script unfit) || fail "$version: it cannot be read"
		[ "$got" = "$(cat "$here/dumpsys/$version.unfit")" ] || fail "$version: no internet over: $got"
	done
	echo 'Active default network: 1' >"$root/tmp/dumpsys"
	if script unfit; then fail "it takes something else for a list of networks"; fi
	rm "$root/tmp/dumpsys"
	if script unfit; then fail "it goes on without dumpsys"; fi
	# What the user says of a link counts, but a comment says nothing, nor does another link whose name begins the same way.
	printf '# rmnet_data1\n[link.rmnet_data16]\nenabled = true\n[link."rmnet_data2"]\nmetered = true\n' >"$data/config.toml"
	got=$(script 'exclusions "rmnet_data1
rmnet_data2
rmnet_data16"')
	case $got in
	*rmnet_data2* | *rmnet_data16* | '') fail "it excludes: $got" ;;
	*'[link."rmnet_data1"]
enabled = false'*) ;;
	*) fail "it does not exclude: $got" ;;
	esac
	rm "$data/config.toml"
}

here=$(dirname "$(readlink -f "$0")")
ip link set lo up
origin
for shell in dash ash mksh; do
	phone
	for wrong in 'x86 30' 'riscv64 35' 'arm64 25' 'arm 25'; do
		# shellcheck disable=SC2086
		if said=$(install_for $wrong); then fail "it installs for $wrong"; fi
		case $said in *'! Tributary'*) ;; *) fail "for $wrong it says: $said" ;; esac
	done
	for arch in arm x64; do
		install_for $arch 30 >/dev/null || fail "it does not install for $arch"
		unzip -p "$zip" bin/$arch/tributary | cmp - "$root/data/adb/modules/tributary/bin/tributary" || fail "another program is installed for $arch"
		[ "$(find "$root/data/adb/modules/tributary/bin" -type f | wc -l)" = 1 ] || fail "programs for others are installed"
	done
	install_for arm64 30 >/dev/null || fail "it does not install"
	module=/data/adb/modules/tributary
	data=$root/data/adb/tributary state=$root/data/misc/tributary
	[ -x "$root/$module/bin/tributary" ] || fail "no program is installed"
	networks_are_read
	install_for arm64 30 >/dev/null || fail "it does not install over itself"
	grep -q '^updateJson=https://' "$root/$module/module.prop" || fail "nobody looks for updates"
	mv "$root/sbin/ip6tables" "$root/sbin/ip6tables.nat"
	printf '#!/bin/busybox sh\necho "can\x27t initialize ip6tables table nat" >&2\nexit 3\n' >"$root/sbin/ip6tables"
	chmod 0755 "$root/sbin/ip6tables"
	said=$(install_for arm64 30)
	case $said in *'no nat for IPv6'*) ;; *) fail "without nat for IPv6 it says: $said" ;; esac
	mv "$root/sbin/ip6tables.nat" "$root/sbin/ip6tables"
	said=$(install_for arm64 30)
	case $said in *'no nat for IPv6'*) fail "with nat for IPv6 it says: $said" ;; esac
	[ -e "$data/config.toml" ] || fail "no configuration is installed"
	case $said in *'1GB a month'*) ;; *) fail "the limit of mobile data is not stated: $said" ;; esac
	"$native" config check --config "$data/config.toml" >/dev/null || fail "the default configuration is wrong"
	echo '# mine' >>"$data/config.toml"
	install_for arm64 30 >/dev/null || fail "it does not install over itself"
	grep -q '# mine' "$data/config.toml" || fail "an update loses the configuration"

	# The program starts itself again, by the name it was called: the kernel has to be able to start that.
	mv "$root/$module/bin/tributary" "$root/bin/tributary.arm64"
	printf '#!/bin/busybox sh\n# qemu-user at times hangs in a fork beside other threads.\nexport GODEBUG=asyncpreemptoff=1 GOMAXPROCS=1\nexec /bin/qemu -0 /bin/emulated /bin/tributary.arm64 "$@"\n' >"$root/bin/emulated"
	chmod 0755 "$root/bin/emulated"
	cp "$root/bin/emulated" "$root/$module/bin/tributary"
	echo com.example.b >>"$data/deny.txt"
	used='[link."wlan?"]
enabled = true # of a kind that is not used by itself'
	echo "$used" >>"$data/config.toml"

	inside /system/bin/sh $module/service.sh || fail "service.sh: $?"
	grep -q 'dumpsys connectivity cannot be read' "$data/log" || fail "it does not say that it knows nothing of networks"
	rules_are() { rules | grep -q -e "$1"; }
	waitfor "rules for apps" rules_are '--uid-owner 10000-19999.*REDIRECT'
	rules_are '--uid-owner 1010000-1019999.*REDIRECT' || fail "a second user goes past: $(rules)"
	rules_are '--uid-owner 1010200 -j RETURN' || fail "deny.txt does not count for a second user: $(rules)"
	rules_are '--uid-owner 10200 -j RETURN' || fail "deny.txt does not count: $(rules)"
	grep -q 'put global mobile_data_always_on 1' "$root/tmp/settings" || fail "mobile data: $(cat "$root/tmp/settings")"
	[ -d "/proc/$(cat "$data/pid")" ] || fail "the proxy does not run"
	confined '3003 3004 3005' # Android's: see internal/host/privilege
	if (: </dev/tcp/127.0.0.1/9091) 2>/dev/null; then fail "every app can read the metrics"; fi
	grep -q '^time=.*+09:00 ' "$data/log" || fail "months begin elsewhere: $(head -1 "$data/log")"

	said=$(inside /system/bin/sh $module/action.sh) || fail "action.sh: $?"
	case $said in *'is stopped'*) ;; *) fail "action.sh says: $said" ;; esac
	waitfor "rules go with action.sh" no_rules
	waitfor "processes end with action.sh" no_processes
	tail -n 1 "$root/tmp/settings" | grep -q 'delete global mobile_data_always_on' || fail "stopped, and the setting stays: $(cat "$root/tmp/settings")"
	echo com.example.a >>"$data/allow.txt"
	said=$(inside /system/bin/sh $module/action.sh) || fail "action.sh: $?"
	case $said in *'Tributary runs'*) ;; *) fail "action.sh says: $said" ;; esac
	waitfor "rules for one app" rules_are '--uid-owner 10123.*REDIRECT'

	kill -9 "$(cat "$data/pid")"
	waitfor "rules go with the proxy's death" no_rules
	inside /system/bin/sh $module/service.sh || fail "service.sh again: $?"
	waitfor "rules again" rules_are REDIRECT

	gone() { [ ! -e "$data" ] && [ ! -e "$state" ]; }
	# The root manager removes the module while the system boots.
	uninstall() {
		rm -f "$root/tmp/booted"
		: >"$root/tmp/settings"
		inside /system/bin/sh $module/uninstall.sh || fail "uninstall.sh: $?"
		rm -rf "${root:?}/$module"
		waitfor "rules go with the module" no_rules
		waitfor "processes end with the module" no_processes
		waitfor "files go with the module" gone
		grep -q 'delete global mobile_data_always_on' "$root/tmp/settings" || fail "the setting stays: $(cat "$root/tmp/settings")"
	}
	uninstall

	install_for arm64 30 >/dev/null || fail "it does not install again"
	cp "$native" "$root/$module/bin/tributary"
	echo "$used" >>"$data/config.toml"
	inside /system/bin/sh $module/service.sh || fail "service.sh with the native program: $?"
	waitfor "rules for apps again" rules_are '--uid-owner 10000-19999.*REDIRECT'
	confined ''
	object | cmp - "$MODULE_TEST_INSIDE/origin/object" || fail "a download is not what the origin has"
	[ "$(received)" -ge 1000000 ] || fail "it went past the proxy, which received $(received) bytes"
	# Wi-Fi turns out to have a login page, which somebody passes.
	logged() { [ "$(grep -c "$1" "$data/log")" -ge "$2" ]; }
	says android10
	ip addr add 192.0.2.3/24 dev wlan0 # a change of addresses has it looked at soon
	waitfor "the login page is noticed" logged "link lost" 1
	"$native" config check --config "$state/config.toml" >/dev/null || fail "the configuration is wrong: $(cat "$state/config.toml")"
	[ "$(stat -c %u:%g:%a "$state/config.toml")" = 0:8080:640 ] || fail "who may read or write the configuration: $(ls -l "$state/config.toml")"
	before=$(received)
	object >"$root/tmp/object" || true # it goes past the proxy, or is refused
	[ "$(received)" = "$before" ] || fail "a network with a login page is used"
	says android8
	ip addr del 192.0.2.3/24 dev wlan0
	waitfor "the login is noticed" logged "link found" 2
	through() { object | cmp -s - "$MODULE_TEST_INSIDE/origin/object" && [ "$(received)" -gt "$before" ]; }
	waitfor "a download after the login" through
	rm "$root/tmp/dumpsys"
	uninstall
	umount -l "$root/proc" "$root/dev" # a process that just ended may still hold one
	echo "ok: $shell"
done
