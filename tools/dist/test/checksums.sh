# shellcheck shell=bash disable=SC2154
# Part of ../test.sh: the checksums, and what each file is.
say "The files of $semver"
check 'the documented command checks the checksums' sh -c "cd '$files' && $(documented 'The files')"
check 'one binary, .deb and .rpm for each of four architectures' equal "$(cd "$files" && printf '%s\n' *.tar.gz *.deb *.rpm | wc -l)" 12
for arch in amd64:x86-64 arm64:aarch64 armv7:ARM riscv64:RISC-V; do
	binary=$(tar -xzOf "$files/tributary_${semver}_linux_${arch%:*}.tar.gz" "tributary_${semver}_linux_${arch%:*}/tributary" | file -)
	check "${arch%:*}: static, for that architecture" grep -qiE "${arch#*:}.*statically linked.*stripped" <<<"$binary"
done
