# shellcheck shell=sh disable=SC2034,SC2154
# What the module's scripts share. MODDIR is the module's folder.

# What the user writes and reads. Only root may enter /data/adb.
DATA=/data/adb/tributary
BIN=$MODDIR/bin/tributary
LOG=$DATA/log

# The proxy's user. No app and no part of Android has this number. Below 10000 Android's firewalls for apps, such as those
# of Doze and Data Saver, do not apply.
PROXY_UID=8080

# Where the proxy's files are: Android has neither /run nor a home.
STATE=/data/misc/tributary
export HOME="$DATA" RUNTIME_DIRECTORY="$STATE/run" STATE_DIRECTORY="$STATE/state"

# Months begin where the phone is.
TZ=$(getprop persist.sys.timezone)
export TZ

. "$MODDIR/networks.sh"

# users prints the numbers of the phone's users: work profiles and second spaces are users, too.
users() {
	for folder in /data/user/*; do
		case ${folder##*/} in
		*[!0-9]*) ;;
		*) echo "${folder##*/}" ;;
		esac
	done
}

# uids prints the user IDs that the apps of a list, one package a line, have for each user.
uids() {
	[ -r "$1" ] || return 0
	while read -r package _; do
		case $package in
		'' | \#*) continue ;;
		esac
		while read -r name uid _; do
			if [ "$name" = "$package" ]; then
				for user in $(users); do
					echo $((user * 100000 + uid))
				done
			fi
		done </data/system/packages.list
	done <"$1"
}

# flags prints which apps are redirected: those of allow.txt, or all if it names none, without those of deny.txt.
flags() {
	allowed=$(uids "$DATA/allow.txt")
	if [ -z "$allowed" ]; then
		for user in $(users); do
			allowed="$allowed $((user * 100000 + 10000))-$((user * 100000 + 19999))"
		done
	fi
	for uid in $allowed; do
		printf ' --user=%s' "$uid"
	done
	for uid in $(uids "$DATA/deny.txt"); do
		printf ' --except=%s' "$uid"
	done
}

# look asks Android which interfaces have no internet: UNFIT.
look() {
	if now=$(unfit); then
		UNFIT=$now READABLE=1
		return
	fi
	if [ "${READABLE:-1}" = 1 ]; then
		echo "dumpsys connectivity cannot be read: networks with a login page, and the provider's own for calls (IMS), count as links" >>"$LOG"
	fi
	UNFIT='' READABLE=0
}

# configure writes the proxy's configuration: the user's, and that the interfaces of UNFIT are left alone.
configure() {
	rm -f "$STATE/config.new"
	{
		cat "$DATA/config.toml"
		exclusions "$UNFIT"
	} >"$STATE/config.new" || return 1
	chown "0:$PROXY_UID" "$STATE/config.new"
	chmod 0640 "$STATE/config.new"
	mv -f "$STATE/config.new" "$STATE/config.toml"
}

# prepare makes the proxy's folders, with its configuration. Their parent stays root's, so the proxy cannot put a link where root
# writes.
prepare() {
	mkdir -p "$STATE/run" "$STATE/state"
	chown "0:$PROXY_UID" "$STATE"
	chmod 0750 "$STATE"
	look
	configure
	chown "$PROXY_UID:$PROXY_UID" "$STATE/run" "$STATE/state"
	chmod 0700 "$STATE/run" "$STATE/state"
}

# mobile_on has mobile data stay up beside Wi-Fi, and notes what was set before.
mobile_on() {
	if [ ! -e "$DATA/mobile_data_always_on" ]; then
		settings get global mobile_data_always_on >"$DATA/mobile_data_always_on"
	fi
	settings put global mobile_data_always_on 1
}

# mobile_back sets what was set before mobile_on. It fails if the system does not listen yet.
mobile_back() {
	[ -e "$DATA/mobile_data_always_on" ] || return 0
	was=$(cat "$DATA/mobile_data_always_on")
	case $was in
	'' | null) settings delete global mobile_data_always_on ;;
	*) settings put global mobile_data_always_on "$was" ;;
	esac >/dev/null || return 1
	rm -f "$DATA/mobile_data_always_on"
}

# start runs the proxy without root's privileges, and as root the process that redirects to it and ends with it.
start() {
	stop
	: >"$LOG"
	prepare 2>>"$LOG"
	mobile_on
	# Whoever pressed the button may go.
	detached=$(command -v setsid)
	$detached "$BIN" serve --user "$PROXY_UID" --config "$STATE/config.toml" >>"$LOG" 2>&1 </dev/null &
	echo $! >"$DATA/pid"
	tries=50
	until [ -S "$STATE/run/control.sock" ] || [ "$tries" = 0 ]; do
		tries=$((tries - 1))
		sleep 0.2
	done
	UNFIT=$UNFIT READABLE=$READABLE $detached /system/bin/sh "$MODDIR/watch.sh" >>"$LOG" 2>&1 </dev/null &
	# shellcheck disable=SC2046 # words are meant
	$detached "$BIN" redirect on --foreground --config "$DATA/config.toml" $(flags) >>"$LOG" 2>&1 </dev/null &
}

# running reports whether the proxy of the pid file runs.
running() {
	[ -r "$DATA/pid" ] || return 1
	pid=$(cat "$DATA/pid")
	[ -n "$pid" ] && [ -d "/proc/$pid" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q tributary
}

# stop ends the proxy and takes the rules away, whether or not it runs.
stop() {
	if running; then
		kill "$pid" 2>/dev/null
		tries=50
		while [ -d "/proc/$pid" ] && [ "$tries" != 0 ]; do
			tries=$((tries - 1))
			sleep 0.2
		done
		kill -9 "$pid" 2>/dev/null
	fi
	"$BIN" redirect off --config "$DATA/config.toml" >/dev/null 2>&1
	rm -f "$DATA/pid" "$STATE/run/control.sock" # one that was killed leaves it
}
