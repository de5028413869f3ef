#!/usr/bin/env bash
# Builds everything of a release twice and uses it as docs/INSTALL.md says: the commands come from that page. As root, on Debian.
#
# The .deb and the archive run in a clean Debian with systemd as its init, in a network namespace with two links of 80 and 60 Mbit/s
# to an nginx. FILES may name a folder that make dist has filled: then nothing is built twice.
# PARTS chooses among the files of the folder test; those after network need it.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
GO=${GO:-go}
repo=$PWD
work=$(mktemp -d /var/tmp/tributary-dist.XXXXXX)
root=$work/debian
machine=td-machine-$$ internet=td-internet-$$ # network namespaces
origin=10.78.0.1
url=http://$origin/big.iso
size=$((40 << 20))
container='' # process of the container's manager
passed=0
failed=0

# shellcheck source=tools/dist/test/lib.sh
. tools/dist/test/lib.sh
trap 'finish $?' EXIT
[ "$(id -u)" = 0 ] || { say 'dist-test takes root: namespaces, a chroot, packages'; exit 1; }

if [ -n "${FILES:-}" ]; then
	files=$(realpath "$FILES")
else
	build_twice
	printf '   both builds: %d s\n' $SECONDS
fi
semver=$(echo "$files"/tributary_*_oci.tar)
semver=${semver##*/tributary_}
semver=${semver%_oci.tar}
for part in ${PARTS:-checksums bill network deb archive rpm image goinstall}; do
	began_part=$SECONDS
	# shellcheck source=/dev/null
	. "tools/dist/test/$part.sh"
	printf '   %s: %d s\n' "$part" $((SECONDS - began_part))
done
