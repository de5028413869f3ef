#!/usr/bin/env bash
# Runs the Go tests of both modules and prints what go test -json says. RACE is -race or nothing: the flag of the packages that
# the race detector watches. RACE_ALL=1: it watches all that have goroutines, and the program in a third of the end-to-end tests.
#
# The end-to-end tests mostly wait for slow links while the simulator computes, so they run side by side; what only computes
# gives way to the others, which look at the clock. Not far: on a busy machine it would starve.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
RACE=${RACE:-}
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT

# run MODULE [FLAG ...] PACKAGE ... leaves vet to tools/test.sh, which has examined all packages. The limit is for hangs: a busy
# machine may be ten times as slow.
run() {
	local module=$1
	shift
	$GO test -C "$module" -json -vet=off -shuffle=on -timeout 60m "$@"
}

# Packages without goroutines have no races. Those of the laboratory that measure time would measure the detector's.
plain='/internal/(arch|core/.*)$|/deploy$'

# Where goroutines share a transfer, the detector always watches. It takes five times the processor time, and a second
# compilation of everything beneath.
watched='/internal/net/|/internal/front/(get|proxy|queue|rpc)$|/pkg/'
lab_race=
if [ -n "${RACE_ALL:-}" ]; then
	watched='.'
	lab_race=$RACE
fi
packages=$($GO list ./...) || exit 1
plain=$(grep -E "$plain" <<<"$packages")
watched=$(grep -vxF "$plain" <<<"$packages" | grep -E "$watched")
other=$(grep -vxF "$plain"$'\n'"$watched" <<<"$packages" | grep -v /internal/systemtest)

# Minutes of virtual time in the engine run without the detector: its other tests run the same code with it.
worlds='^Test(OneOriginAccuses|SilenceOfSeveral|LinkReturnsAtOnce|MeteredTrials|DeadLinkIsProbedSparingly)$'

# What runs side by side would compile the same packages more than once.
# shellcheck disable=SC2086 # a list; RACE may be empty
$GO build ./... && $GO build $RACE $watched && $GO build -C lab $lab_race ./... || exit 1

# computes runs what only computes.
computes() {
	local failed=0
	run . -run "$worlds" ./internal/net/engine || failed=1
	GOGC=800 run lab ./sim ./literature ./power ./httprules ./mutate ./pac || failed=1
	# shellcheck disable=SC2086
	run . $plain || failed=1
	return $failed
}

# The end-to-end tests wait most of the time, so three parts of about the same length run side by side.
first='^Test(RealOrigins|Redirect|RedirectSecure|OtherInterfaces|Logins|Spread|SpreadLinkDies|MonthlyLimit|AppMonthlyLimit)$'
second='^Test(SlowClients|Relay.*|Costs.*|Clients|OriginSettings|Strangers|Docs|Uploads|NAT64|Curl)$'

jobs=()
# job NAME COMMAND ... runs a command in the background.
job() {
	local name=$1
	shift
	"$@" >"$said/$name" &
	jobs+=($!)
}
# shellcheck disable=SC2086
{
	job e2e1 run lab $lab_race -run "$first" ./e2e
	job e2e2 run lab -run "$second" ./e2e
	job e2e3 run lab -skip "$first|$second" ./e2e
	job netlab run lab -p 1 ./netlab ./cmd/...
	job system run . ./internal/systemtest
}
(renice -n 2 "$BASHPID" >/dev/null && computes >"$said/computes") &
jobs+=($!)

# With the detector, tables of thousands of requests are left out, and the random ones run a hundred times.
failed=0
unless="^Test(SameAsDirect|Origins)$|$worlds"
# shellcheck disable=SC2086
{
	TRIBUTARY_CASES=100 run . $RACE -skip "$unless" $watched || failed=1
	[ -z "$other" ] || TRIBUTARY_CASES=100 run . -skip "$unless" $other || failed=1
}
for job in "${jobs[@]}"; do
	wait "$job" || failed=1
done
cat "$said"/*
exit "$failed"
