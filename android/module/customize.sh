# shellcheck shell=sh disable=SC2154
# Sourced by the installer of Magisk, KernelSU or APatch after the files are in $MODPATH. It must not exit.

if [ ! -e "$MODPATH/bin/$ARCH/tributary" ]; then
	abort "! Tributary is built for arm64, arm and x64; this phone says $ARCH"
fi
if [ "${API:-0}" -lt 26 ]; then
	abort "! Tributary needs Android 8 or newer (API 26); this phone has API ${API:-?}"
fi

ui_print "- Tributary: downloads over Wi-Fi and mobile data at once"
mv "$MODPATH/bin/$ARCH/tributary" "$MODPATH/bin/tributary"
rm -rf "$MODPATH/bin/arm" "$MODPATH/bin/arm64" "$MODPATH/bin/x64"
set_perm "$MODPATH/bin/tributary" 0 0 0755
for script in service.sh uninstall.sh action.sh; do
	set_perm "$MODPATH/$script" 0 0 0755
done

# What a user writes outlives updates, so it is not in the module's folder.
data=/data/adb/tributary
mkdir -p "$data"
chmod 0700 "$data"
for file in config.toml allow.txt deny.txt; do
	if [ ! -e "$data/$file" ]; then
		cp "$MODPATH/defaults/$file" "$data/$file"
	fi
done
if ! ip6tables -t nat -L >/dev/null 2>&1; then
	ui_print "! This phone's kernel has no nat for IPv6: downloads from IPv6 addresses go past Tributary."
	ui_print "! Where the mobile network or Wi-Fi has IPv6, most do. An IPv4-only APN avoids that."
fi
ui_print "- Mobile data is used beside Wi-Fi, within the limit \"monthly\" of $data/config.toml:"
if grep -q '^monthly' "$data/config.toml"; then
	sed -n '/^monthly/s/.*"\(.*\)".*/-   \1 a month/p' "$data/config.toml" | sort -u | while read -r line; do ui_print "$line"; done
else
	ui_print "!   it sets none, so nothing limits mobile data"
fi
ui_print "- To change it, edit that file and press the action button twice."
ui_print "- Apps to leave alone: $data/deny.txt. It starts with the next boot"
