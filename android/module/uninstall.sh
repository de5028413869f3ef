#!/system/bin/sh
# Run by the root manager when the module is removed: nothing is left behind.

MODDIR=${0%/*}
. "$MODDIR/common.sh"

stop
if [ -e "$DATA/mobile_data_always_on" ]; then
	was=$(cat "$DATA/mobile_data_always_on")
	case $was in
	'' | null) settings delete global mobile_data_always_on ;;
	*) settings put global mobile_data_always_on "$was" ;;
	esac
fi
rm -rf "$DATA" "$STATE"
