#!/bin/sh
# Runs once, as root, when a server starts for the first time with deploy/relay/cloud-init.yaml: downloads the program, checks it, starts
# the relay, and leaves a pairing link in the file "link" beside this script. The settings are in the file "settings" there.
set -eu
umask 022
here=$(dirname "$0")
program=/usr/local/bin/tributary-relay
fail() { echo "tributary-relay: $*" >&2; exit 1; }

version='' sha256_amd64='' sha256_arm64='' address='' console=no releases=''
# shellcheck source=/dev/null
. "$here/settings"

case $(uname -m) in
x86_64) arch=amd64 want=$sha256_amd64 ;;
aarch64) arch=arm64 want=$sha256_arm64 ;;
*) fail "there is no checksum for $(uname -m) in the settings" ;;
esac
[ -n "$version" ] && [ -n "$want" ] || fail "set version and sha256_$arch: the checksums are in SHA256SUMS of the release"

name=tributary_${version}_linux_$arch
url=$releases/v$version/$name.tar.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The network may not be complete yet.
tries=0
until
	if command -v curl >/dev/null; then
		curl -fsSL --connect-timeout 20 -o "$work/archive" "$url"
	else
		wget -q -T 20 -O "$work/archive" "$url"
	fi
do
	tries=$((tries + 1))
	[ "$tries" -lt 12 ] || fail "cannot download $url"
	sleep 5
done
echo "$want  $work/archive" | sha256sum -c --status || fail "$url does not have the checksum in sha256_$arch: nothing is installed"
tar -xzf "$work/archive" -C "$work" "$name/tributary"
said=$("$work/$name/tributary" version 2>&1) || fail "the program does not run: $said"
install -m 755 "$work/$name/tributary" "$program"

sysctl -q -p /etc/sysctl.d/90-tributary-relay.conf || echo "warning: short transfers over idle connections are slower"
systemctl daemon-reload
systemctl enable --now tributary-relay.socket tributary-relay.service ||
	fail "the relay does not start: see  systemctl status tributary-relay.socket tributary-relay.service"

if [ -z "$address" ]; then # that of the route to the internet; nothing is sent
	address=$(ip -4 -o route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \([^ ]*\).*/\1/p')
	case $address in
	10.* | 192.168.* | 172.1[6-9].* | 172.2[0-9].* | 172.3[01].* | 100.6[4-9].* | 100.[7-9][0-9].* | 100.1[01][0-9].* | 100.12[0-7].* | '')
		echo "The relay runs. Its own address is private, so no link was made. With the public one:  tributary-relay relay pair HOST:443"
		exit 0
		;;
	esac
fi
(umask 077 && "$program" relay pair "$address:443" >"$here/link")
echo "The relay runs. A pairing link, valid once and for 15 minutes, is in $here/link. Another one:  tributary-relay relay pair $address:443"
if [ "$console" = yes ]; then
	cat "$here/link" >/dev/console
fi
