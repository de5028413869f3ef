#!/bin/sh
# Prints the version of this tree, as the go command would call it: the tag, or a pseudo-version (go.dev/ref/mod#pseudo-versions)
# that sorts after the last tag and before the next, with "+dirty" for changes that are not committed. It is a semantic version
# with a "v"; a copy without git has v0.0.0-unknown.
set -eu
cd "$(dirname "$0")/.."

if ! git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	echo v0.0.0-unknown
	exit
fi
semantic='v[0-9]*.[0-9]*.[0-9]*'
if version=$(git describe --tags --exact-match --match "$semantic" 2>/dev/null); then
	:
else
	commit=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)-$(git rev-parse HEAD | cut -c 1-12)
	last=$(git describe --tags --abbrev=0 --match "$semantic" 2>/dev/null) || last=
	case $last in
	'') version=v0.0.0-$commit ;;
	*-*) version=$last.0.$commit ;; # v1.2.0-rc.1: the next is v1.2.0-rc.2 or v1.2.0
	*) version=${last%.*}.$((${last##*.} + 1))-0.$commit ;;
	esac
fi
[ -z "$(git status --porcelain)" ] || version=$version+dirty
echo "$version"
