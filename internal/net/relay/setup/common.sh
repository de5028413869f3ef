# What install.sh and remove.sh have in common.
program=/usr/local/bin/tributary-relay
state=/var/lib/tributary-relay
log=/var/log/tributary-relay.log
pidfile=/run/tributary-relay.pid
before=/run/tributary-relay.slow-start
knob=/proc/sys/net/ipv4/tcp_slow_start_after_idle
sysctl=/etc/sysctl.d/90-tributary-relay.conf
service=/etc/systemd/system/tributary-relay.service
socket=/etc/systemd/system/tributary-relay.socket

stop_relay() {
	if [ -d /run/systemd/system ] && [ -e "$service" ]; then
		systemctl stop tributary-relay.socket tributary-relay.service 2>/dev/null || :
	fi
	[ -e "$pidfile" ] || return 0
	pid=$(cat "$pidfile")
	tries=0
	while :; do
		case $(readlink "/proc/$pid/exe" 2>/dev/null) in
		"$program" | "$program (deleted)") ;;
		*) break ;; # it has ended, and another process may have the number
		esac
		case $tries in
		0) kill "$pid" || : ;;
		100) kill -9 "$pid" || : ;;
		esac
		tries=$((tries + 1))
		sleep 0.1
	done
	rm -f "$pidfile"
}
