#!/bin/bash
# fetch.sh takes what it knows and nothing else. JUNIT is the right junit-4.13.2.jar, which a stand-in for Maven gives.
set -eu
junit=$(readlink -f "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cat >"$work/bin/mvn" <<'STUB'
#!/bin/bash
# Copies the file GIVEN to the folder that it is asked for, under the artifact's name.
for arg; do case $arg in -Dartifact=*) artifact=${arg#*=} ;; -DoutputDirectory=*) dir=${arg#*=} ;; esac; done
IFS=: read -r _ name version <<<"$artifact"
cp "$GIVEN" "$dir/$name-$version.jar"
STUB
chmod +x "$work/bin/mvn"
cp "$junit" "$work/changed.jar"
printf x >>"$work/changed.jar"
fail() { echo "FAIL: $*" >&2; exit 1; }
fetch() { GIVEN=$1 PATH=$work/bin:$PATH ./fetch.sh "$2" "$work/got.jar" 2>"$work/said"; }

if fetch "$work/changed.jar" junit:junit:4.13.2; then fail "it takes a jar that was changed"; fi
grep -q 'not 8e495b63' "$work/said" || fail "of a changed jar it says: $(cat "$work/said")"
[ ! -e "$work/got.jar" ] || fail "it leaves a jar that was changed"
if fetch "$junit" junit:junit:4.13.3; then fail "it takes a jar that it has no sum of"; fi
grep -q 'no SHA-256' "$work/said" || fail "of an unknown jar it says: $(cat "$work/said")"
[ ! -e "$work/got.jar" ] || fail "it leaves a jar that it has no sum of"
fetch "$junit" junit:junit:4.13.2 || fail "it does not take the right jar: $(cat "$work/said")"
cmp "$junit" "$work/got.jar" || fail "it leaves another file"
echo "ok: fetch.sh"
