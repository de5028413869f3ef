#!/system/bin/sh
# Run by the root manager when the system boots, in the background.

MODDIR=${0%/*}
. "$MODDIR/common.sh"

while [ "$(getprop sys.boot_completed)" != 1 ]; do
	sleep 2
done

start
