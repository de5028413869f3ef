#!/bin/bash
# Builds the last commit twice and compares the APKs and the module. The second build has another folder, another umask, time zone
# and locale, and an empty cache of Go's. Both sign with one key: apksigner's signatures with RSA are the same each time, too.
set -eu
repository=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s -C "$repository/android" "${XDG_CACHE_HOME:-$HOME/.cache}/tributary-android/debug.p12"
mkdir -p "$work/deep/down"
git clone -q --no-hardlinks "$repository" "$work/one"
git clone -q --no-hardlinks "$repository" "$work/deep/down/two"
make -s -C "$work/one/android" apk module
(
	umask 077
	export TZ=Asia/Tokyo LC_ALL=C GOCACHE=$work/gocache
	make -s -C "$work/deep/down/two/android" apk module
)
different=0
cd "$work/one/android/out"
for file in unsigned/*.apk ./*.apk tributary-module.zip tributary-module.json; do
	if cmp "$file" "$work/deep/down/two/android/out/$file"; then
		sha256sum "$file"
	else
		different=1
	fi
done
exit $different
