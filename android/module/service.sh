#!/system/bin/sh
# Run by the root manager when the system boots, in the background.

MODDIR=${0%/*}
. "$MODDIR/common.sh"

while [ "$(getprop sys.boot_completed)" != 1 ]; do
	sleep 2
done

# Mobile data stays up beside Wi-Fi. What was set before comes back when the module goes.
if [ ! -e "$DATA/mobile_data_always_on" ]; then
	settings get global mobile_data_always_on >"$DATA/mobile_data_always_on"
fi
settings put global mobile_data_always_on 1

start
