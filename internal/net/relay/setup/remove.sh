# Removes what install.sh has made.
set -eu
stop_relay
if [ -d /run/systemd/system ] && [ -e "$service" ]; then
	systemctl disable --quiet tributary-relay.socket tributary-relay.service || :
fi
rm -f "$service" "$socket" "$program" "$program.new" "$sysctl" "$log"
rm -rf "$state" "/var/lib/private/${state##*/}"
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl reset-failed tributary-relay.socket tributary-relay.service 2>/dev/null || :
	rmdir /var/lib/private 2>/dev/null || : # if it is empty; systemd makes it when a service needs it
fi
if [ -w "$knob" ] && [ -e "$before" ]; then
	cat "$before" >"$knob"
fi
rm -f "$before"
