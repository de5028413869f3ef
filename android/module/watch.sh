#!/system/bin/sh
# Runs beside the proxy and has it leave alone the networks that have no internet. It ends with the proxy.

MODDIR=${0%/*}
. "$MODDIR/common.sh"

every=5      # seconds
settling=12  # looks after a change: Android needs time to find out whether a network has internet
seldom=12    # looks of which one asks when nothing changes: somebody may pass a login page

running || exit 0
proxy=$pid seen='' left=0 rest=0
while sleep "$every" && [ -d "/proc/$proxy" ] && [ "$(cat "$DATA/pid" 2>/dev/null)" = "$proxy" ]; do
	# The addresses of all interfaces: reading them wakes nobody.
	now=$(cat /proc/net/fib_trie /proc/net/if_inet6 2>/dev/null)
	if [ "$now" != "$seen" ]; then
		seen=$now left=$settling
	fi
	if [ "$left" -gt 0 ]; then
		left=$((left - 1))
	elif [ "$rest" -gt 0 ]; then
		rest=$((rest - 1))
		continue
	fi
	rest=$seldom
	before=$UNFIT
	look
	if [ "$UNFIT" != "$before" ]; then
		configure && kill -HUP "$proxy"
	fi
done
