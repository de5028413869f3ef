#!/bin/bash
# Puts a dynamic loader for arm64 into CACHE/sysroot/system/bin/linker64: that of Debian's musl, which is unpacked, not
# installed.
set -eu
cache=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial"
chmod 0755 "$work"
apt=(apt-get -q -o "Dir::State::lists=$work/lists" -o APT::Architectures::="$(dpkg --print-architecture)" -o APT::Architectures::=arm64
	-o APT::Sandbox::User=root)
"${apt[@]}" update >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; exit 1; }
cd "$work"
"${apt[@]}" download musl:arm64 >>"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; exit 1; }
dpkg -x musl_*.deb "$work/musl"
mkdir -p "$cache/sysroot.new/system/bin"
install -m 0755 "$(find "$work/musl" -name libc.so)" "$cache/sysroot.new/system/bin/linker64"
mv "$cache/sysroot.new" "$cache/sysroot"
