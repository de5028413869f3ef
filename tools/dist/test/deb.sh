# shellcheck shell=bash disable=SC2154
# Part of ../test.sh: the .deb, from its installation to its purge.
say 'The .deb'
heading='Debian and Ubuntu'
deb=$(echo "$files"/*_"$(dpkg --print-architecture)".deb)

# everything lists the container's files but for logs, caches, temporary files and dpkg's own state.
everything() {
	inside find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log -o -path /var/cache \
		-o -path /root/release \) -prune -o -printf '%M %u %p %l\n' |
		grep -vE ' /var/lib/(dpkg/(status|available|lock|triggers|diversions|statoverride)|apt/|systemd/(timers|random-seed|catalog)|logrotate)' | sort -k3
}
everything >"$work/before"

began=$(date +%s.%N)
documented "$heading" 1 >"$work/install"
check 'apt installs it by the documented command' inside sh -ec "$(cat "$work/install")"
installed=$(date +%s.%N)
check 'the first download, by an ordinary user, is right and comes over both links' both_links \
	as alice curl -sf -x http://127.0.0.1:8080 -o got "$url"
downloaded=$(date +%s.%N)
check 'its bytes are the origin'"'"'s' cmp "$root/home/alice/got" "$work/www/big.iso"
printf '   from the .deb to the end of the first download of %d MiB over two links: %.1f s, of which apt took %.1f s; %s\n' \
	$((size >> 20)) "$(echo "$downloaded - $began" | bc)" "$(echo "$installed - $began" | bc)" "$(cat "$work/shares")"

pid() { inside systemctl show --property MainPID --value tributary; }
status() { inside grep -E "^$1:" "/proc/$(pid)/status" | cut -f2; }
check 'the documented checks' inside sh -ec "$(documented "$heading" 2)"
uid=$(status Uid)
check "its user is one of its own that systemd made (${uid%%[[:space:]]*})" sh -c "[ ${uid%%[[:space:]]*} -ge 61184 ] && [ ${uid%%[[:space:]]*} -le 65519 ]"
check 'it has no capability' equal "$(status CapEff)$(status CapBnd)" 00000000000000000000000000000000
check 'it can gain none' equal "$(status NoNewPrivs)" 1
check 'only root and that user see the live page' refused as alice curl -sf -o /dev/null http://127.0.0.1:9091/
check 'systemd-analyze verify' inside sh -c '! systemd-analyze verify --man=no tributary.service tributary.socket tributary-gateway.socket tributary-rpc.socket tributary-socks.socket 2>&1 | grep -i tributary'
check "systemd-analyze security: $(inside systemd-analyze security tributary --no-pager | tail -n 1 | grep -oE '[0-9.]+ [A-Z]+')" \
	inside sh -c "systemd-analyze security tributary --threshold=25 --no-pager >/dev/null"
check 'root'"'"'s doctor finds it at both ports, which systemd holds, too' equal "$(inside tributary doctor --offline | grep -c '^ok .*Tributary is running')" 2
check 'enabled at boot' inside systemctl is-enabled tributary.service tributary.socket
check 'manual pages' inside sh -c 'man --where tributary && man --where tributary-get && man --where 5 tributary.toml'
check 'manual pages have no errors' sh -c "for f in '$root'/usr/share/man/man[15]/tributary*.gz; do mandoc -T lint -W error \"\$f\" || exit 1; done"
check 'completions load' inside bash -c '. /usr/share/bash-completion/completions/tributary'
# Debian has a changelog for each upload, and tells users of a release's bugs by its own tracker; the packages are not from Debian.
check 'lintian finds no error' lintian --no-cfg --fail-on error --suppress-tags \
	no-changelog,changelog-file-missing-in-native-package,statically-linked-binary,malformed-contact,bogus-mail-host,bad-distribution-in-changes-file,unstripped-static-library "$deb"

say 'Its configuration'
documented "$heading" 3 >"$work/allow"
check 'the documented change of allow_users' inside sh -ec "$(cat "$work/allow")"
check 'alice is let in' as alice curl -sf -x http://127.0.0.1:8080 -r 0-99 -o /dev/null "$url"
check 'bob is not: 403' equal "$(as bob curl -s -x http://127.0.0.1:8080 -o /dev/null -w '%{http_code}' "$url")" 403
documented 'Change the port' >"$work/port"
check 'the documented change of the port' inside sh -ec "$(cat "$work/port")"
check 'it serves there' as alice curl -sf -x http://127.0.0.1:3128 -r 0-99 -o /dev/null "$url"
inside sh -ec 'rm -r /etc/systemd/system/tributary.socket.d; sed -i /3128/d /etc/tributary/config.toml; systemctl daemon-reload; systemctl stop tributary.service tributary.socket; systemctl start tributary.socket tributary.service'
edited=$(sha256sum <"$root/etc/tributary/config.toml")

# repacked makes the same package with a higher version, and with another default configuration if a line for it is given.
repacked() { # VERSION [LINE]
	rm -rf "$work/repack"
	dpkg-deb -R "$deb" "$work/repack"
	sed -i "s/^Version:.*/Version: $1/" "$work/repack/DEBIAN/control"
	[ -z "${2:-}" ] || echo "$2" >>"$work/repack/etc/tributary/config.toml"
	dpkg-deb --root-owner-group -Zgzip -z1 -b "$work/repack" "$root/root/release/new_$1.deb" >/dev/null
}
say 'Its upgrade'
repacked 99.0
old=$(pid)
check 'apt upgrades it without a question' inside apt-get install -y ./new_99.0.deb
check 'an edited configuration is kept' equal "$(sha256sum <"$root/etc/tributary/config.toml")" "$edited"
check 'the service restarted' eventually inside sh -c "p=\$(systemctl show -P MainPID tributary); [ \"\$p\" != $old ] && [ \"\$p\" != 0 ] && systemctl is-active tributary"
check 'and works' as alice curl -sf -x http://127.0.0.1:8080 -r 0-99 -o /dev/null "$url"
repacked 99.1 '# Another default.'
check 'an upgrade with another default, too' inside apt-get install -y -o Dpkg::Options::=--force-confold ./new_99.1.deb
check 'keeps the edited configuration' equal "$(sha256sum <"$root/etc/tributary/config.toml")" "$edited"
check 'and leaves the new default beside it' test -e "$root/etc/tributary/config.toml.dpkg-dist"
inside systemctl disable tributary.service >/dev/null 2>&1
repacked 99.2
inside apt-get install -y -o Dpkg::Options::=--force-confold ./new_99.2.deb >/dev/null 2>&1
check 'a service that the administrator disabled stays disabled' equal "$(inside systemctl is-enabled tributary.service || true)" disabled
inside systemctl enable tributary.service >/dev/null 2>&1

say 'Its restart'
as alice curl -s -x http://127.0.0.1:8080 -o /dev/null "http://$origin/slow" &
slow=$!
running() { inside sh -c 'tributary status --once | grep -A1 ^DOWNLOAD | grep -v ^DOWNLOAD'; }
check 'a download runs' eventually running
old=$(pid)
inside systemctl --no-block restart tributary
check 'the service finishes it first' eventually inside sh -c 'systemctl show -P SubState tributary | grep -x stop-sigterm'
check 'a new download waits meanwhile (curl: 28, no answer)' equal "$(as alice curl -s -m 3 -x http://127.0.0.1:8080 -r 0-99 -o /dev/null "$url" || echo $?)" 28
check 'the documented command to cut it off' inside sh -ec "$(documented "$heading" 4)"
check 'a new download works after that' as alice curl -sf -m 60 -x http://127.0.0.1:8080 -r 0-99 -o /dev/null "$url"
check 'by a new process' refused equal "$(pid)" "$old"
cut=0
wait "$slow" || cut=$?
check "the program whose download was cut off sees an error (curl: $cut)" test "$cut" != 0

say 'A restart and an upgrade under load'
# Twenty programs download one object after the other, by ranges or through a tunnel, and compare what they got.
cp "$work/www/small.iso" "$root/home/alice/small.iso"
cat >"$root/home/alice/load" <<-END
	case \$1 in *[02468]) url=http://$origin/small.iso ;; *) url=https://$origin/small.iso ;; esac
	until [ -e enough ]; do
		curl -sSf -m 300 -x http://127.0.0.1:8080 -o "got\$1" "\$url" 2>&1 && cmp "got\$1" small.iso && echo right
	done
END
as alice sh -c 'for n in $(seq 20); do sh load $n & done; wait' >"$work/load" 2>&1 &
load=$!
more() { [ "$(grep -c right "$work/load")" -ge "$1" ]; } # downloads
eventually more 20
replaced() { p=$(pid) && [ "$p" != "$old" ] && [ "$p" != 0 ]; }
repacked 99.3
for way in 'systemctl restart tributary' 'systemctl restart tributary' 'apt-get install -y ./new_99.3.deb'; do
	old=$(pid)
	had=$(grep -c right "$work/load")
	check "$way, during downloads" inside $way
	check 'a new process' eventually replaced
	check 'serves more of them' eventually more $((had + 40))
done
inside touch /home/alice/enough
wait "$load"
check "of $(grep -c right "$work/load") downloads, none was broken" refused grep -v right "$work/load"
inside sh -c 'rm /home/alice/got* /home/alice/small.iso /home/alice/load /home/alice/enough'

say 'Its removal'
as alice curl -s -x http://127.0.0.1:8080 -o /dev/null "http://$origin/slow" &
slow=$!
check 'a download runs' eventually running
before=$SECONDS
documented "$heading" 5 >"$work/remove"
check 'the documented apt-get remove, during a download' inside sh -ec "$(head -n 1 "$work/remove" | sed 's/remove/remove -y/; s/#.*//')"
check "it does not wait for the download ($((SECONDS - before)) s)" test $((SECONDS - before)) -lt 30
wait "$slow" 2>/dev/null || true
check 'the configuration stays' test -e "$root/etc/tributary/config.toml"
check 'no process stays' refused inside pgrep -x tributary
check 'apt installs it again' inside sh -ec "$(cat "$work/install")"
check 'and starts it' inside systemctl is-active tributary.service tributary.socket
check 'with the configuration that stayed' equal "$(sha256sum <"$root/etc/tributary/config.toml")" "$edited"
# What root set up for apt must go with the program: without it, apt could not connect.
apt_settings() { inside sh -c 'cat /etc/apt/sources.list; find /etc/apt -type f | sort'; }
echo "deb [trusted=yes] https://$origin/apt ./" >>"$root/etc/apt/sources.list"
apt_settings >"$work/apt"
inside sed -i '1 i gateway = "127.0.0.1:8081"' /etc/tributary/config.toml
inside systemctl restart tributary
check 'use refuses a port that another user can take' inside sh -c "tributary use apt 2>&1 | grep 'can take port 8081'"
# As docs/GATEWAY.md says.
inside systemctl enable tributary-gateway.socket >/dev/null 2>&1
check 'systemd holds the port of the gateway' inside sh -c 'systemctl restart tributary && systemctl is-active tributary-gateway.socket'
check 'tributary use apt' inside tributary use apt
check 'it changes the settings of apt' refused diff "$work/apt" <(apt_settings)
from_origin='-o Dir::Etc::SourceList=/root/release/origin.list -o Dir::Etc::SourceParts=/dev/null'
inside sh -c 'grep 127.0.0.1:8081 /etc/apt/sources.list >origin.list'
check 'apt-get update works by the gateway' inside sh -c "apt-get -o APT::Update::Error-Mode=any $from_origin update"
check 'the documented apt-get purge' inside sh -ec "$(tail -n 1 "$work/remove" | sed 's/purge/purge -y/; s/#.*//')"
check 'the settings of apt are what they were' diff "$work/apt" <(apt_settings)
inside rm -f /home/alice/got
# These two are not Tributary's alone.
inside rmdir /root/.local/state /root/.local
everything >"$work/after"
check 'purge leaves nothing behind' diff "$work/before" "$work/after"
check 'no unit is left' inside sh -c '! systemctl list-units --all --plain --no-legend "tributary*" | grep -v not-found'
