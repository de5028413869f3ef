#!/usr/bin/env bash
# Builds what a release consists of into $OUT, "dist" by default: see docs/INSTALL.md for the names. The same commit gives the
# same bytes, whoever builds it and where: times come from the commit, the Go release from go.mod.
#
# GO, VERSION (a semantic version with its "v"), REVISION (the commit) and SOURCE_DATE_EPOCH (seconds since 1970) may be set. PRODUCT_CACHE is the
# GOCACHE of the product's own build, for dist-test, which wants to compile everything twice.
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022
GO=${GO:-go}
VERSION=${VERSION:-$(tools/version.sh)}
REVISION=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
GOTOOLCHAIN=$(awk '$1 == "toolchain" { print $2 }' go.mod)
export VERSION SOURCE_DATE_EPOCH GOTOOLCHAIN TZ=UTC LC_ALL=C
export GOFLAGS='' CGO_ENABLED=0 GOOS=linux
unset GOARCH GOARM GOAMD64 GOEXPERIMENT
OUT=$(realpath -m "${OUT:-dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage

say() { printf '== %s\n' "$*"; }
tool() { GOOS='' $GO tool -modfile="$PWD/tools/go.mod" "$@"; }

# GOARCH, the names of the architecture in Debian and in RPM, and in images; GOARM and GOAMD64 where there is a choice.
platforms='amd64 amd64 x86_64 linux/amd64
arm64 arm64 aarch64 linux/arm64
armv7 armhf armv7hl linux/arm/v7
riscv64 riscv64 riscv64 linux/riscv64'

# Debian and RPM sort "~" before everything, and have "-" for themselves.
semver=${VERSION#v}
native=${semver%%[-+]*}
[[ $semver =~ ^[^-+]*-([^+]*) ]] && native+="~${BASH_REMATCH[1]//-/.}"
[[ $semver == *+* ]] && native+="+$(tr -c 'A-Za-z0-9.' . <<<"${semver#*+}" | sed 's/\.$//')"
if ! [[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$ ]]; then
	say "VERSION=$VERSION is not a semantic version like v1.2.3" >&2
	exit 2
fi

rm -rf "$OUT"
mkdir -p "$OUT" "$stage"

build() { # ARCH OUTPUT
	local arch=$1
	[ "$1" != armv7 ] || arch=arm
	GOARCH=$arch GOARM=7 GOAMD64=v1 GOCACHE=${PRODUCT_CACHE:-$($GO env GOCACHE)} $GO build -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.version=$VERSION" -o "$2" ./cmd/tributary
}

say "Building $VERSION with $($GO env GOVERSION)"
while read -r arch _; do
	build "$arch" "$work/$arch/tributary"
done <<<"$platforms"

host=$(GOOS='' $GO env GOHOSTARCH)
[ "$host" != arm ] || host=armv7
own=$work/$host/tributary # runs here
if [ ! -e "$own" ]; then
	build "$host" "$own"
fi

say 'Manual pages, completions, licences'
"$own" man "$stage/man"
mkdir -p "$stage/completions"
"$own" completion bash >"$stage/completions/tributary.bash"
"$own" completion zsh >"$stage/completions/_tributary"
"$own" completion fish >"$stage/completions/tributary.fish"

# modules lists those that a binary is linked with: path and version.
modules() { $GO version -m "$1" | awk '$1 == "dep" { print $2, $3 }'; }
modules "$work/amd64/tributary" >"$work/modules"
while read -r arch _; do
	modules "$work/$arch/tributary" | diff -u "$work/modules" - || { say "$arch is linked with other modules than amd64"; exit 1; }
done <<<"$platforms"

# licences prints the licence of everything that is linked into the program, and of what its live page is drawn with.
licences() {
	one() { # TITLE FILE ...
		printf '%s\n%s\n%s\n\n' "$(printf '=%.0s' {1..79})" "$1" "$(printf '=%.0s' {1..79})"
		shift
		cat "$@"
		echo
	}
	one "The Go standard library $($GO env GOVERSION)" "$($GO env GOROOT)/LICENSE"
	local path version dir files
	while read -r path version; do
		dir=$($GO list -m -f '{{.Dir}}' "$path")
		files=$(find "$dir" -maxdepth 1 -type f \( -iname '*licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
		[ -n "$files" ] || { say "$path has no licence" >&2; return 1; }
		# shellcheck disable=SC2086 # a list
		one "$path $version" $files
	done <"$work/modules"
	one 'uPlot 1.6.32' internal/front/page/static/uplot-LICENSE.txt
}
licences >"$stage/THIRD_PARTY_LICENSES"

mkdir -p "$stage/systemd/system" "$stage/systemd/user" "$stage/docs/guides" "$stage/examples" "$stage/packages"
# The units of a package are in place and run the program of the package.
for unit in deploy/systemd/*.service deploy/systemd/*.socket deploy/systemd/user/*; do
	to=$stage/systemd/system
	case $unit in */user/*) to=$stage/systemd/user ;; esac
	sed -e '1,/^\[Unit\]/{/^#   /d}' -e '1,/^\[Unit\]/{/^#$/d}' -e 's|%h/.local/bin/tributary|/usr/bin/tributary|' "$unit" >"$to/${unit##*/}"
done
cp deploy/systemd/tributary.toml "$stage/config.toml"
cp LICENSE README.md CHANGELOG.md deploy/packages/copyright "$stage"
cp docs/*.md "$stage/docs"
cp docs/guides/*.md "$stage/docs/guides"
cp -r deploy/prometheus deploy/grafana "$stage/examples"
cp deploy/packages/deb-* deploy/packages/rpm-* "$stage/packages"
cp deploy/packages/nfpm.yaml "$work"

# tree gives everything below a folder its mode and time.
tree() {
	find "$1" -type d -exec chmod 755 {} +
	find "$1" -type f -exec chmod 644 {} +
	find "$1" -name tributary -type f -exec chmod 755 {} +
	find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

say 'Archives'
while read -r arch _; do
	name=tributary_${semver}_linux_$arch
	mkdir "$work/$name"
	cp -r "$work/$arch/tributary" "$stage"/{LICENSE,THIRD_PARTY_LICENSES,README.md,CHANGELOG.md,man,completions,docs} deploy/systemd "$work/$name"
	tree "$work/$name"
	tar -C "$work" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n >"$OUT/$name.tar.gz"
done <<<"$platforms"

say 'Packages'
gzip -9n "$stage"/man/*/*
gzip -9nc CHANGELOG.md >"$stage/changelog.gz"
tool nfpm --version >/dev/null # compiled before the working directory changes
nfpm=$(tool -n nfpm)
packed() { "$nfpm" package -f ../nfpm.yaml "$@" >"$work/nfpm.log" 2>&1 || { cat "$work/nfpm.log"; return 1; }; }
while read -r arch deb rpm _; do
	cp "$work/$arch/tributary" "$stage/tributary"
	tree "$stage"
	(
		cd "$stage"
		export NFPM_VERSION=$native
		NFPM_ARCH=$deb NFPM_RELEASE='' packed -p deb -t "$OUT/tributary_${native}_$deb.deb"
		NFPM_ARCH=$rpm NFPM_RELEASE=1 packed -p rpm -t "$OUT/tributary-$native-1.$rpm.rpm"
	)
done <<<"$platforms"

say 'Image'
images=()
while read -r arch _ _ platform; do
	images+=("$platform=$work/$arch/tributary")
done <<<"$platforms"
GOOS='' $GO run -C tools ./dist/image -o "$OUT/tributary_${semver}_oci.tar" -config "$stage/config.toml" -version "$semver" -revision "$REVISION" "${images[@]}"

say 'Bill of materials'
# The time is the commit's; uPlot is the one part that is not a Go module.
tool cyclonedx-gomod bin -json -noserial -notimestamp -std -version "$VERSION" -output "$work/sbom.json" "$work/amd64/tributary" 2>"$work/sbom.log" ||
	{ cat "$work/sbom.log"; exit 1; }
jq --sort-keys --arg time "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" '.metadata.timestamp = $time | .components += [{
	"bom-ref": "pkg:npm/uplot@1.6.32", "type": "library", "name": "uplot", "version": "1.6.32", "purl": "pkg:npm/uplot@1.6.32",
	"licenses": [{"license": {"id": "MIT"}}]}]' "$work/sbom.json" >"$OUT/tributary_${semver}_sbom.cdx.json"

(cd "$OUT" && sha256sum -- *.tar.gz *.deb *.rpm *.tar *.json >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
chmod 644 "$OUT"/*
say "In $OUT:"
(cd "$OUT" && wc -c -- * | sed 's/^/   /')
