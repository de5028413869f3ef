#!/system/bin/sh
# The button in the root manager: it starts what is stopped, stops what runs, and says what it did.

MODDIR=${0%/*}
. "$MODDIR/common.sh"

if running; then
	"$BIN" status --once --config "$DATA/config.toml"
	stop
	mobile_back
	echo "Tributary is stopped. Press again to start it."
else
	start
	sleep 1
	if running; then
		echo "Tributary runs:"
		"$BIN" links --config "$STATE/config.toml"
		"$BIN" redirect status --config "$DATA/config.toml"
	else
		echo "Tributary did not start:"
		tail -n 5 "$LOG"
	fi
fi
