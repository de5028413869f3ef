#!/system/bin/sh
# Run by the root manager when the module is removed, mostly while the system boots: nothing is left behind.

MODDIR=${0%/*}
. "$MODDIR/common.sh"

stop
# The setting can be changed only when the system has booted; what it was is kept until then.
(
	until [ "$(getprop sys.boot_completed)" = 1 ] && mobile_back; do
		sleep 2
	done
	rm -rf "$DATA" "$STATE"
) >/dev/null 2>&1 </dev/null &
