# shellcheck shell=bash disable=SC2154
# Part of ../test.sh: go install from a module proxy that has this tree and, for the rest, what this machine's module cache has.
say 'go install'
mkdir "$work/module"
git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$work/module"
release=v0.0.$((RANDOM + 1))
check 'the module can be packed' "$GO" run -C tools ./dist/modproxy -o "$work/proxy" -version $release "$work/module"
packed=$(echo "$work"/proxy/github.com/tributary-http/tributary/@v/*.zip)
check "its zip is small ($(stat -c %s "$packed") bytes) " test "$(stat -c %s "$packed")" -lt $((10 << 20))
check 'without the laboratory and the tools' refused sh -c "unzip -l '$packed' | grep -E '@$release/(lab|tools)/'"
$GO mod download
cache=$($GO env GOMODCACHE)/cache/download
# The checksum database knows neither this version nor, without a network, the others.
installs() {
	env GOPATH="$work/gopath" GOBIN='' GOMODCACHE="$work/modcache" GOFLAGS=-modcacherw GOSUMDB=off GOPROXY="file://$work/proxy,file://$cache" sh -ec "$1"
}
check 'the documented installation' installs "$(documented 'go install' 1)"
check 'it knows its version' sh -c "'$work/gopath/bin/tributary' version | grep -qF 'tributary $release '"
check 'the documented command with a version' installs "$GO install github.com/tributary-http/tributary/cmd/tributary@$release"
check 'the documented build from source, without git' sh -ec "cd '$work/module'; $(documented 'From source')"
