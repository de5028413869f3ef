# shellcheck shell=bash disable=SC2154
# Part of ../test.sh: the bill of materials against what the go command reads from each binary, and the licences.
say 'Bill of materials'
bill=$files/tributary_${semver}_sbom.cdx.json
jq -r '.components[] | select(.purl | startswith("pkg:golang/")) | select(.name != "std") | .name + " " + .version' "$bill" | sort >"$work/bill"
for arch in amd64 arm64 armv7 riscv64; do
	tar -xzf "$files/tributary_${semver}_linux_$arch.tar.gz" -C "$work" --strip-components=1 "tributary_${semver}_linux_$arch/"{tributary,THIRD_PARTY_LICENSES}
	$GO version -m "$work/tributary" | awk '$1 == "dep" { print $2, $3 }' | sort >"$work/linked"
	check "$arch: it lists the $(wc -l <"$work/linked") modules that go version -m finds" diff "$work/linked" "$work/bill"
	check "$arch: each of them has its licence in the archive" sh -c \
		"cut -d' ' -f1 '$work/linked' | while read -r m; do grep -q \"^\$m v\" '$work/THIRD_PARTY_LICENSES' || { echo \"\$m\"; exit 1; }; done"
done
check 'it names the Go release and the version' jq -e --arg v "v$semver" \
	'.metadata.component.version == $v and (.components[] | select(.name == "std") | .version | length > 0)' "$bill"
