#!/usr/bin/env bash
# Checks the English of Markdown files, of comments and strings in Go code, and of the app's texts, by the rules in
# styles/Tributary. Needs no network.
set -uo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go}
VALE="$GO tool -modfile=$PWD/tools/go.mod vale --config tools/prose/vale.ini --output line"
texts=$(mktemp -d) || exit 1
trap 'rm -rf "$texts"' EXIT
failed=0

git ls-files -z '*.md' '*.go' 'fastlane/*/en-US/*.txt' | xargs -0 $VALE || failed=1

# Strings keep the lines that they have in their source.
git ls-files -z '*.go' 'android/app/res/values/strings.xml' | xargs -0 "$GO" run -C tools ./prose "$PWD" "$texts" || exit 1
$VALE "$texts" | sed "s|^$texts/||; s|\.txt:|:|" || failed=1
exit "$failed"
