#!/usr/bin/env bash
# Breaks lines of the core, one at a time in a copy of the tree, and sees whether the simulator's invariants notice. GO is
# the go command.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp -r go.mod go.sum internal "$dir"

# What is broken | file | the line as it is, without its indent | what takes its place
mutations='the reorder window bounds what is read|internal/transfer/decide.go|upTo := min(end, limit)|upTo := end
no request waits behind one that waits for it|internal/transfer/decide.go|if a := m.attempt(id); a.want.Start > start && a.want.End > m.led.Limit() {|if a := m.attempt(id); a == nil {
a byte is asked for twice only if its link is silent|internal/transfer/decide.go|if !a.Silent {|if false {
what a lost attempt owes becomes free again|internal/segment/ledger.go|l.free.Add(r)|_ = r
silent links are noticed|internal/transfer/link.go|case now.Sub(since) < limit:|case limit > 0:
what another attempt fetches does not become free|internal/segment/ledger.go|l.free.Remove(c.Clip(r))|_ = c
a tail that was moved is no longer wanted|internal/transfer/attempt.go|a.want.End = min(was, max(b.want.Start, a.cursor)) // its answer may have turned out to be shorter|_ = b'

failed=0
while IFS='|' read -r what file old new; do
	awk -v old="$old" -v new="$new" '{ line = $0; sub(/^\t+/, "", line) } line == old { print new; n++; next } { print } END { exit n == 0 }' \
		"$file" >"$dir/$file" || { echo "the line is not in $file any more: $old" && exit 1; }
	if ! (cd "$dir" && $GO vet ./internal/transfer ./internal/segment) >"$dir/out" 2>&1; then
		verdict='NO BUILD'
	elif (cd "$dir" && $GO test -count=1 -timeout 60s -run 'Invariants|Waste' ./internal/sim) >"$dir/out" 2>&1; then
		verdict=SURVIVED
	else
		verdict=caught
	fi
	[ "$verdict" = caught ] || failed=1
	printf '%-9s %-55s %s\n' "$verdict" "$what" "$(grep -oE 'seed [0-9]+: .*|test timed out|[a-z, 0-9]+: [0-9]+ bytes of waste' "$dir/out" | head -1 | cut -c1-110)"
	cp "$file" "$dir/$file"
done <<<"$mutations"
exit "$failed"
