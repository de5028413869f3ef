# shellcheck shell=bash disable=SC2154
# Part of ../test.sh: the archive, for a user without root, beside no other installation.
say 'The archive'
heading='Any Linux: the archive'
inside systemctl start "user@$(inside id -u alice).service"
check 'a session of systemd for alice' eventually as alice systemctl --user is-active basic.target
cp "$files"/tributary_*_linux_amd64.tar.gz "$root/home/alice"
inside sh -c 'chown alice: /home/alice/*.gz'
everything | grep ' /home/alice' >"$work/before"
check 'the documented installation' as alice sh -ec "$(documented "$heading" 1)"
inside ls /run/user >/dev/null
check 'the documented checks' as alice sh -ec "$(documented "$heading" 2)"
check 'a download over both links' both_links as alice curl -sf -x http://127.0.0.1:8080 -o /dev/null "$url"
check 'bob gets 403' equal "$(as bob curl -s -x http://127.0.0.1:8080 -o /dev/null -w '%{http_code}' "$url")" 403
check 'the documented manual pages and completions' as alice sh -ec "cd tributary_*_linux_amd64; $(documented "$heading" 3)"
check 'man finds them' as alice sh -c 'MANPATH=~/.local/share/man man --where tributary-get'
check 'the documented removal' as alice sh -ec "$(documented "$heading" 4)"
inside sh -c 'rm -rf /home/alice/tributary_*/'
everything | grep ' /home/alice' | grep -vE '/\.(config|local)(/|$| )' >"$work/after"
check 'nothing of it is left in the home' diff "$work/before" "$work/after"
check 'but for folders' equal "$(inside find /home/alice/.config /home/alice/.local -not -type d)" ''
halt
