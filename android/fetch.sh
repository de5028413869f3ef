#!/bin/bash
# Fetches a Maven artifact (GROUP:ARTIFACT:VERSION) to FILE, by Maven, so that its settings for mirrors count.
set -eu
artifact=$1 file=$2
IFS=: read -r _ name version <<<"$artifact"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mvn -q -B dependency:copy -Dartifact="$artifact" -DoutputDirectory="$work" >&2
mkdir -p "$(dirname "$file")"
cp "$work/$name-$version.jar" "$file.new"
mv "$file.new" "$file"
