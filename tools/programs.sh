#!/usr/bin/env bash
# Installs what lab/e2e/programs.toml names of PyPI, npm, crates.io and Go modules into a folder: tools/programs.sh FOLDER
# tools/programs.sh debian prints the names of its Debian packages.
# One package after the other, so that one that cannot be had does not keep the others out: its test is skipped.
set -uo pipefail
cd "$(dirname "$0")/.."

of() { sed -n "s/^$1 = \"\(.*\)\"/\1/p" lab/e2e/programs.toml | tr ' ' '\n' | sort -u; }

if [ "$1" = debian ]; then
	of debian
	exit
fi
mkdir -p "$1" && dir=$(cd "$1" && pwd) || exit 1
[ -e "$dir/venv" ] || python3 -m venv "$dir/venv" || exit 1
for package in $(of pypi); do
	timeout 300 "$dir/venv/bin/pip" install -q --disable-pip-version-check "$package" || echo "$package could not be had"
done
[ -e "$dir/package.json" ] || echo '{"private":true}' >"$dir/package.json"
for package in $(of npm); do
	# with the scripts of the package: some fetch their program from npm then
	timeout 300 npm install -s --no-audit --no-fund --prefix "$dir" "$package" || echo "$package could not be had"
done
for crate in lab/e2e/testdata/crates/*/Cargo.toml; do
	[ -e "$crate" ] || continue
	CARGO_TARGET_DIR=$dir/target timeout 600 cargo build -q --release --locked --manifest-path "$crate" || echo "$crate could not be built"
done
for module in $(of go); do
	GOBIN=$dir/bin timeout 600 go install "$module" || echo "$module could not be had"
done
