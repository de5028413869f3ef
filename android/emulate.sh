#!/bin/bash
# Runs a command that starts a phone's program as $TRIBUTARY_BINARY: emulate.sh PROGRAM [EMULATOR [OPTION...]] -- COMMAND...
set -eu
program=$(readlink -f "$1")
shift
emulator=()
while [ "$1" != -- ]; do
	emulator+=("$1")
	shift
done
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 0755 "$work" # the daemon's user may not read what is in root's folders
cp "$program" "$work/tributary"
for i in "${!emulator[@]}"; do
	if [ -d "${emulator[i]}" ]; then
		cp -r "${emulator[i]}" "$work/sysroot"
		emulator[i]=$work/sysroot
	fi
done
printf '#!/bin/sh\nexport GODEBUG=asyncpreemptoff=1\nexec %s "%s" "$@"\n' "${emulator[*]}" "$work/tributary" >"$work/emulated"
chmod 0755 "$work/emulated"
TRIBUTARY_BINARY=$work/emulated "$@"
