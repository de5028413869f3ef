# Installs the relay whose program was copied to $program.new, and starts it. $1 is the port.
set -eu
port=$1
umask 022
fail() { echo "$*" >&2; exit 1; }

said=$("$program.new" version 2>&1) || fail "the program does not run there: $said"

stop_relay
mv "$program.new" "$program"

# No slow start after idle. Undo puts back what was.
if [ -w "$knob" ]; then
	[ -e "$before" ] || cat "$knob" >"$before"
	echo 0 >"$knob" || echo "warning: $knob cannot be set: short transfers over idle lanes are slower"
else
	echo "warning: $knob cannot be set: short transfers over idle lanes are slower"
fi
if [ -d /etc/sysctl.d ]; then
	write_sysctl
fi

if [ -d /run/systemd/system ]; then
	write_service
	write_socket
	systemctl daemon-reload
	systemctl enable --quiet --now tributary-relay.socket tributary-relay.service || {
		systemctl status --no-pager --lines=5 tributary-relay.socket tributary-relay.service >&2 || :
		fail "the relay does not start: is port $port in use? Another one: --port"
	}
	echo "service: tributary-relay, started at boot"
	exit 0
fi

# Without systemd: a process in the background, as a user that nobody else is.
if ! [ -d "$state" ]; then
	uid=61184
	while grep -q "^[^:]*:[^:]*:$uid:" /etc/passwd || stat -c %u /var/lib/* | grep -qx "$uid"; do uid=$((uid + 1)); done
	mkdir -m 700 "$state"
	chown "$uid:$uid" "$state"
fi
cd /
umask 077
: >"$log"
STATE_DIRECTORY=$state setsid "$program" relay serve --listen ":$port" </dev/null >>"$log" 2>&1 &
pid=$!
echo "$pid" >"$pidfile"
tries=0
until grep -q 'relay is listening' "$log"; do
	kill -0 "$pid" 2>/dev/null || fail "the relay does not start: $(tail -n 3 "$log")"
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || fail "the relay does not start within 20 s: $(tail -n 3 "$log")"
	sleep 0.1
done
echo "process: there is no systemd, so nothing starts it after a reboot: run this again, or have your init run  STATE_DIRECTORY=$state $program relay serve --listen :$port"
