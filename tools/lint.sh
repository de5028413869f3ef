#!/usr/bin/env bash
# The linters of tools/go.mod, on the product and on the laboratory.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
TOOL="$GO tool -modfile=$PWD/tools/go.mod"
failed=0

echo '== gofumpt'
unformatted=$($TOOL gofumpt -l .) || failed=1
if [ -n "$unformatted" ]; then
	printf '%s\nnot formatted: run  %s gofumpt -w .\n' "$unformatted" "$TOOL"
	failed=1
fi

echo '== prose: vale with the rules in tools/prose'
GO=$GO tools/prose/lint.sh || failed=1

for module in . lab; do
	echo "== staticcheck in $module"
	(cd "$module" && $TOOL staticcheck ./...) || failed=1

	echo "== govulncheck in $module"
	out=$(cd "$module" && $TOOL govulncheck ./... 2>&1)
	status=$?
	printf '%s\n' "$out"
	if [ "$status" != 0 ]; then
		if grep -q 'fetching vulnerabilities' <<<"$out"; then
			echo 'govulncheck could not reach its database (vuln.go.dev): NOT CHECKED. Run make lint again with a network.'
		else
			failed=1
		fi
	fi
done
exit "$failed"
