#!/bin/bash
# Runs F-Droid's recipe, io.github.tributary.yml, on a clone of the last commit in a clean Debian and compares the unsigned APK
# with the one that `make unsigned-ABI` makes here: test.sh ABI..., or test.sh all. Root. CHROOT names a folder with a Debian of
# debootstrap's, which is copied; without it one is made. SUITE is Debian's release; only with that of this machine are the
# tools the same, and so the bytes.
set -eu
here=$(dirname "$(readlink -f "$0")")
recipe=$here/io.github.tributary.yml
repository=$(git -C "$here" rev-parse --show-toplevel)
# shellcheck disable=SC1091
. /etc/os-release
suite=${SUITE:-$VERSION_CODENAME}
[ "$*" != all ] || set -- armeabi-v7a x86_64 arm64-v8a
work=$(mktemp -d)
chmod 0755 "$work"
root=$work/root
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
	umount -l "$root/proc" "$root/dev/null" "$root/dev/urandom" 2>/dev/null || true
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive HOME=/root "$@"; }

# What F-Droid's build server has before it looks at the recipe.
if [ -n "${CHROOT:-}" ]; then
	cp -a --reflink=auto "$CHROOT" "$root"
else
	debootstrap --variant=minbase "$suite" "$root" http://deb.debian.org/debian >"$work/log" || { tail "$work/log" >&2; exit 1; }
fi
mount -t proc proc "$root/proc"
for device in null urandom; do
	rm -f "$root/dev/$device"
	: >"$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
cp /etc/resolv.conf /etc/hosts "$root/etc/"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod +x "$root/usr/sbin/policy-rc.d"
mkdir -p "$root/usr/local/share/ca-certificates"
find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$root/usr/local/share/ca-certificates/" \; # of this network
inside apt-get -q update
inside apt-get -q -y install --no-install-recommends git python3-yaml ca-certificates unzip
inside useradd -m vagrant

# field prints the commands or the value that the recipe's build for an architecture has, as fdroidserver gives them to a shell.
field() {
	inside python3 - "$abi" "$1" <<-'PYTHON'
		import sys, yaml

		abi, name = sys.argv[1:]
		(build,) = [b for b in yaml.safe_load(open("/tmp/recipe.yml"))["Builds"] if b["output"].endswith(f"-{abi}.apk")]
		value = "; ".join(build[name]) if isinstance(build[name], list) else str(build[name])
		print(value.replace("$$VERSION$$", build["versionName"]).replace("$$VERCODE$$", str(build["versionCode"])))
	PYTHON
}
cp "$recipe" "$root/tmp/recipe.yml"
git clone -q --no-hardlinks "$repository" "$work/ours"
different=0
for abi; do
	clone=/home/vagrant/build/io.github.tributary-$abi
	mkdir -p "$root/home/vagrant/build"
	git clone -q --no-hardlinks "$repository" "$root$clone"
	inside chown -R vagrant:vagrant /home/vagrant
	inside bash -e -u -o pipefail -c "$(field sudo)"
	inside setpriv --reuid=vagrant --regid=vagrant --init-groups env HOME=/home/vagrant \
		bash -e -u -o pipefail -c "cd $clone; $(field build)"
	output=$root$clone/$(field output)
	said=$(aapt dump badging "$output" | head -1)
	case $said in
	*"versionCode='$(field versionCode)' versionName='$(field versionName)'"*) ;;
	*) echo "fdroid/test.sh: the recipe says $(field versionName) ($(field versionCode)), the APK: $said" >&2 && exit 1 ;;
	esac
	make -s -C "$work/ours/android" "unsigned-$abi" VERSION="$(field versionName)"
	cmp "$output" "$work/ours/android/out/unsigned/tributary-$abi.apk" || different=1
	sha256sum "$output" | sed "s#$root##"
done
exit $different
