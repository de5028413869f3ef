#!/usr/bin/env bash
# Runs the Go tests of both modules and prints what go test -json says. RACE is -race or nothing.
#
# The end-to-end tests mostly wait for slow links while the simulator computes, so they run side by side; what only computes
# gives way to the others, which look at the clock. Not far: on a busy machine it would starve.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
RACE=${RACE:-}
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT

# run MODULE [FLAG ...] PACKAGE ...
run() {
	local module=$1
	shift
	$GO test -C "$module" -json -shuffle=on -timeout 20m "$@"
}

# Packages without goroutines have no races. Those of the laboratory that measure time would measure the detector's.
plain='/internal/(arch|core/.*)$|/deploy$'
packages=$($GO list ./...) || exit 1

# Tables of thousands of requests run without the detector, and the random ones with it a hundred times.
cases='^(TestSameAsDirect|TestOrigins|TestDifferential)$'

# So do minutes of virtual time in the engine: its other tests run the same code with the detector.
worlds='^Test(OneOriginAccuses|SilenceOfSeveral|LinkReturnsAtOnce|MeteredTrials|DeadLinkIsProbedSparingly)$'

# What runs side by side would compile the same packages more than once.
# shellcheck disable=SC2086 # RACE may be empty
$GO build ./... && $GO build $RACE ./... || exit 1

# computes runs what only computes.
computes() {
	local failed=0
	run . -run "$cases" ./internal/daemon || failed=1
	run . -run "$worlds" ./internal/net/engine || failed=1
	GOGC=800 run lab ./sim ./literature ./power ./httprules ./mutate ./pac || failed=1
	# shellcheck disable=SC2046 # a list
	run . $(grep -E "$plain" <<<"$packages") || failed=1
	return $failed
}

# Half of the end-to-end tests by their time, most of which they wait. The detector watches the program in these; the others run the
# same code, as do the tests of the packages.
half='^Test(RealOrigins|Redirect|RedirectSecure|OtherInterfaces|Logins|Spread|SpreadLinkDies|MonthlyLimit|AppMonthlyLimit)$'

jobs=()
# shellcheck disable=SC2086
run lab $RACE -run "$half" ./e2e >"$said/e2e1" &
jobs+=($!)
run lab -skip "$half" ./e2e >"$said/e2e2" &
jobs+=($!)
run lab -p 1 ./netlab ./cmd/... >"$said/netlab" &
jobs+=($!)
(renice -n 2 "$BASHPID" >/dev/null && computes >"$said/computes") &
jobs+=($!)

failed=0
# shellcheck disable=SC2046,SC2086
TRIBUTARY_CASES=100 run . $RACE -skip "^Test(SameAsDirect|Origins)$|$worlds" $(grep -vE "$plain" <<<"$packages") || failed=1
for job in "${jobs[@]}"; do
	wait "$job" || failed=1
done
cat "$said"/*
exit "$failed"
