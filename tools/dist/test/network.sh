# shellcheck shell=bash disable=SC2154
# Part of ../test.sh: a clean Debian and its network.
say 'A clean Debian'
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
packages=systemd-sysv,dbus,libpam-systemd,ca-certificates,curl,procps,man-db
if [ -n "${ROOTFS:-}" ]; then # a tar of one, to save a minute
	mkdir "$root" && tar -xf "$ROOTFS" -C "$root"
else
	debootstrap --variant=minbase --include=$packages "$suite" "$root" http://deb.debian.org/debian >"$work/debootstrap" 2>&1 || {
		tail "$work/debootstrap"
		exit 1
	}
fi
mkdir -p "$root/root/release"
cp "$files"/* "$root/root/release"
links
serve
boot
check 'systemd runs in it' eventually inside systemctl is-active basic.target
cp "$work/origin.crt" "$root/usr/local/share/ca-certificates"
inside update-ca-certificates >/dev/null 2>&1
inside useradd -m alice
inside useradd -m bob
