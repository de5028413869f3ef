#!/usr/bin/env bash
# Runs every fuzz test for FUZZTIME, then CASES differential tests, FAULTS transfers under random faults and
# LIES of each kind for the spot check. go test -fuzz takes one test of one package at a time.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
failed=0
for package in $($GO list ./...); do
	dir=$($GO list -f '{{.Dir}}' "$package")
	for fuzz in $(grep -hos '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -d' ' -f2); do
		echo "== $package $fuzz"
		$GO test -run '^$' -fuzz "^$fuzz\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 1s "$package" || failed=1
	done
done
echo '== random requests to random origins, directly and through Tributary'
TRIBUTARY_CASES=${CASES:-20000} $GO test -count=1 -v -timeout 30m -run '^TestDifferential$' ./internal/systemtest ./pkg/tributary || failed=1
echo '== transfers under random faults'
TRIBUTARY_FAULTS=${FAULTS:-12000} $GO test -count=1 -v -timeout 60m -parallel 16 -run '^TestRandomFaults$' ./internal/systemtest | grep -v '^ *--- PASS\|=== ' || failed=1
echo '== links that deliver another object under the same headers'
TRIBUTARY_LIES=${LIES:-100} $GO test -count=1 -v -run '^TestSpotCheck$' ./internal/systemtest | grep -v '^ *--- PASS\|=== ' || failed=1
exit "$failed"
