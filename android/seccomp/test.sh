#!/bin/bash
# Runs a command that starts a phone's program as $TRIBUTARY_BINARY, writes down the system calls that the program makes, and
# compares them with those that Android lets apps make (calls.txt): test.sh ABI PROGRAM EMULATOR COMMAND...
# Android ends an app's process at once that makes another one.
set -eu
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
abi=$1 program=$2 emulator=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 0777 "$work" # the program's user writes there
if [ -n "$emulator" ]; then
	# shellcheck disable=SC2086
	set -- $emulator -strace -D "$work/trace.%d" -- "$@"
else
	set -- strace -f -qq -ff -o "$work/trace" -- "$@"
fi
# Tracing is slow: whether the command finds the program fast enough does not count here.
"$here/../emulate.sh" "$program" "$@" >"$work/said" 2>&1 || true
# This version of qemu-user knows no name for 422, which is futex_time64.
sed -n 's/^\([0-9]* \)\?\(Unknown syscall [0-9]*\|[a-z_0-9]*\)(\?.*/\2/p' "$work"/trace* |
	sed 's/^Unknown syscall 422$/futex_time64/' | grep . | sort -u >"$work/made"
echo "$abi: $(wc -l <"$work/made") system calls: $(paste -sd ' ' "$work/made")"
if [ "$(wc -l <"$work/made")" -lt 50 ]; then
	tail -n 40 "$work/said" >&2
	echo "$abi: too few calls: was the program traced?" >&2
	exit 1
fi
column=$(awk -v abi="$abi" '$1 == "#" && $2 == "call" { for (i = 3; i <= NF; i++) if ($i == abi) print i - 1 }' "$here/calls.txt")
# Kernels have futex_time64 from 5.1 on, and Android 8 to 10 have older ones: Go looks at the kernel's version before it calls
# (runtime/os_linux32.go).
awk -v column="$column" '$1 !~ /^#/ && $column != "-" && ($column <= 26 || $1 == "futex_time64" && $column <= 30) { print $1 }' \
	"$here/calls.txt" | sort >"$work/allowed"
forbidden=$(comm -23 "$work/made" "$work/allowed" | paste -sd ' ')
if [ -n "$forbidden" ]; then
	echo "$abi: calls.txt does not have Android 8 allow these calls: $forbidden" >&2
	echo "If it lacks their names, add them and run levels.py." >&2
	exit 1
fi
