# shellcheck shell=bash disable=SC2154,SC2034
# What the parts of dist-test share: see ../test.sh, which sets repo, work, url and the rest.

say() { printf '== %s\n' "$*"; }

# check says whether a command succeeded. What it printed is shown if not.
check() { # WHAT COMMAND ...
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then
		passed=$((passed + 1))
		printf '   ok    %s\n' "$what"
	else
		failed=$((failed + 1))
		printf '   FAIL  %s\n' "$what"
		tail -n 30 <<<"$out" | sed 's/^/         /'
	fi
}

equal() { [ "$1" = "$2" ] || { printf 'got  %s\nwant %s\n' "$1" "$2"; return 1; }; }
refused() { ! "$@"; }

# eventually repeats a command until it succeeds, for a minute at most: what it waits for happens in another process.
eventually() {
	local end=$((SECONDS + 60))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { "$@"; return 1; }
		sleep 0.2
	done
}

# documented prints the commands below a heading of docs/INSTALL.md, all or those of the Nth block, for this network's origin.
documented() { # HEADING [N]
	awk -v heading="## $1" -v block="${2:-0}" '
		/^## / { inside = $0 == heading; next }
		!inside { next }
		/^    / { if (!in_block) n++; in_block = 1; if (!block || n == block) print substr($0, 5); next }
		NF { in_block = 0 }' "$repo/docs/INSTALL.md" |
		sed -e "s|http://example.com/big.iso|$url|" -e 's/^sudo //; s/| sudo /| /' | grep . || { say "docs/INSTALL.md: nothing below $1 $2" >&2; return 1; }
}

# build_twice builds in two folders, as two people with other settings would, the second without anything compiled. Both see
# what git sees: commits, and changes to tracked and new files.
build_twice() {
	local version epoch n
	version=${VERSION:-$(tools/version.sh)}
	epoch=$(git log -1 --format=%ct)
	REVISION=$(git rev-parse HEAD)
	export REVISION
	for n in 1 2; do
		mkdir -p "$work/$n/a folder"
		git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$work/$n/a folder"
	done
	say 'Building once'
	GO=$GO VERSION=$version SOURCE_DATE_EPOCH=$epoch OUT=$work/1/out "$work/1/a folder/tools/dist/dist.sh"
	say 'Building again, in another folder, with an empty cache'
	mv "$work/2/a folder" "$work/2/elsewhere"
	(
		umask 077
		export TZ=Asia/Kolkata LC_ALL=C.UTF-8 HOSTNAME=other
		GO=$GO VERSION=$version SOURCE_DATE_EPOCH=$epoch OUT=$work/2/out PRODUCT_CACHE=$work/cache "$work/2/elsewhere/tools/dist/dist.sh" >/dev/null
	)
	check 'two builds of everything have the same bytes' diff -r "$work/1/out" "$work/2/out"
	rm -rf "$work/cache" "$work/2"
	files=$work/1/out
}

# inside runs a command in the container as root, from /root/release.
inside() {
	nsenter -t "$(pgrep -P "$container")" -m -u -i -n -p -r -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive sh -c 'cd /root/release && exec "$@"' sh "$@"
}

# as runs a command in the container as a user, as if logged in.
as() { # USER COMMAND ...
	local user=$1
	shift
	inside runuser -u "$user" -- env HOME="/home/$user" XDG_RUNTIME_DIR="/run/user/$(inside id -u "$user")" sh -c 'cd && exec "$@"' sh "$@"
}

# received prints the bytes that a link has received.
received() { ip netns exec "$machine" cat "/sys/class/net/$1/statistics/rx_bytes"; }

# both_links runs a command, says what it took and what came over each link, and wants a fifth over either.
both_links() {
	local a b
	a=$(received $link1) b=$(received $link2)
	"$@" || return 1
	a=$(($(received $link1) - a)) b=$(($(received $link2) - b))
	printf '%s %s bytes, %s %s bytes\n' $link1 "$a" $link2 "$b" | tee "$work/shares"
	[ $((a * 5)) -gt "$size" ] && [ $((b * 5)) -gt "$size" ]
}

# Tributary leaves veth devices alone by default, unless they are named as the modems of phones are.
link1=rmnet_data0 link2=ccmni0

# links makes the namespaces and the links between them.
links() {
	ip netns add "$machine"
	ip netns add "$internet"
	ip -n "$machine" link set lo up
	ip -n "$internet" link set lo up
	ip -n "$internet" address add "$origin/32" dev lo
	local i=0 name rate
	for name in $link1:80 $link2:60; do
		i=$((i + 1)) rate=${name#*:} name=${name%:*}
		ip link add "$name" netns "$machine" type veth peer name "peer$i" netns "$internet"
		ip -n "$machine" address add "10.77.$i.2/24" dev "$name"
		ip -n "$internet" address add "10.77.$i.1/24" dev "peer$i"
		ip -n "$machine" link set "$name" up
		ip -n "$internet" link set "peer$i" up
		ip -n "$machine" route add default via "10.77.$i.1" metric $((100 * i))
		ip netns exec "$internet" tc qdisc add dev "peer$i" root tbf rate "${rate}mbit" burst 64kb latency 50ms
	done
	ip netns exec "$machine" sh -c 'for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 2 >$f; done'
}

# serve starts nginx with an object at the origin, and by https with a repository for apt without a package.
serve() {
	mkdir -p "$work/www/apt" "$work/nginx"
	: >"$work/www/apt/Packages"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$origin" -addext "subjectAltName=IP:$origin" \
		-keyout "$work/origin.key" -out "$work/origin.crt" 2>/dev/null
	head -c "$size" /dev/urandom >"$work/www/big.iso"
	head -c $((4 << 20)) "$work/www/big.iso" >"$work/www/small.iso"
	chmod 755 "$work" "$work/www" "$work/www/apt"
	cat >"$work/nginx.conf" <<-END
		pid $work/nginx/pid;
		error_log $work/nginx/error.log;
		daemon off;
		events {}
		http {
			access_log off;
			client_body_temp_path $work/nginx; proxy_temp_path $work/nginx; fastcgi_temp_path $work/nginx;
			uwsgi_temp_path $work/nginx; scgi_temp_path $work/nginx;
			server { listen $origin:443 ssl; root $work/www; ssl_certificate $work/origin.crt; ssl_certificate_key $work/origin.key; }
			server { listen $origin:80; root $work/www; location /slow { alias $work/www/big.iso; limit_rate 100k; } }
		}
	END
	ip netns exec "$internet" nginx -c "$work/nginx.conf" 2>/dev/null &
	nginx=$!
	eventually ip netns exec "$machine" curl -sf -o /dev/null -r 0-0 "$url"
}

# boot starts the clean Debian with its own systemd, in the machine's network.
boot() {
	systemd-nspawn --quiet --directory "$root" --boot --register=no --keep-unit --link-journal=no --machine="td-$$" \
		--network-namespace-path="/run/netns/$machine" >"$work/boot" 2>&1 </dev/null &
	container=$!
	eventually inside sh -c 'systemctl is-system-running | grep -E "running|degraded"'
}

# halt stops the container.
halt() {
	[ -n "$container" ] || return 0
	kill -TERM "$container" 2>/dev/null || true # nspawn powers it off
	timeout 60 tail --pid="$container" -f /dev/null || kill -KILL "$container" 2>/dev/null || true
	wait "$container" 2>/dev/null || true
	container=''
}

# finish cleans up and says how it went.
finish() {
	local status=$1 name
	halt
	[ -z "${nginx:-}" ] || kill "$nginx" 2>/dev/null || true
	for name in "$machine" "$internet"; do
		ip netns del "$name" 2>/dev/null || true
	done
	[ -z "${podman_clean:-}" ] || "$podman_clean" || true
	chmod -R u+w "$work" 2>/dev/null || true
	[ -n "${KEEP:-}" ] || rm -rf --one-file-system "$work"
	if [ "$status" = 0 ] && [ "$failed" -gt 0 ]; then status=1; fi
	printf '%d passed, %d failed\n' "$passed" "$failed"
	exit "$status"
}
