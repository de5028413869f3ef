# shellcheck shell=bash disable=SC2154
# Part of ../test.sh: the .rpm, by Debian's rpm and dnf in empty roots, since there is no distribution with rpm here.
say 'The .rpm'
rpm=$(echo "$files"/tributary-*.x86_64.rpm)
query() { rpm -qp "$@" "$rpm" 2>/dev/null; }
check 'digests of header and content' rpm -K --nosignature "$rpm"
check 'name, release, licence, packager' equal "$(query --qf '%{NAME} %{RELEASE} %{ARCH} %{LICENSE} %{OS} %{BUILDHOST}')" 'tributary 1 x86_64 Apache-2.0 linux tributary'
check 'each architecture is its own' equal "$(for f in "$files"/*.rpm; do rpm -qp --qf '%{ARCH} ' "$f" 2>/dev/null; done)" 'aarch64 armv7hl riscv64 x86_64 '
check 'its version' equal "$(query --qf '%{VERSION}')" "$(dpkg-deb -f "$deb" Version)"
check 'it needs nothing but rpm itself and a shell' equal "$(query --requires | grep -vE '^rpmlib\(|^/bin/sh$|^config\(')" ''
check 'it recommends certificates' equal "$(query --recommends)" ca-certificates
check 'one configuration file, which is not replaced' equal "$(query --configfiles)" /etc/tributary/config.toml
check 'flagged as such' equal "$(query --qf '[%{FILENAMES} %{FILEFLAGS:fflags}\n]' | grep config.toml)" '/etc/tributary/config.toml cn'
check 'two licences, flagged as such' equal "$(query --licensefiles | xargs)" '/usr/share/licenses/tributary/LICENSE /usr/share/licenses/tributary/THIRD_PARTY_LICENSES'
check 'all files are root'"'"'s' equal "$(query --qf '[%{FILEUSERNAME}:%{FILEGROUPNAME}\n]' | sort -u)" root:root
# Each has some files at places of its own.
own='share/doc/tributary/(copyright|changelog.gz|CHANGELOG.md|THIRD)|share/licenses|zsh'
check 'the files of the .deb' diff <(query --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' | awk '/^-/ { print $2 }' | grep -vE "$own" | sort) \
	<(dpkg-deb --fsys-tarfile "$deb" | tar -tv | awk '/^-/ { print substr($6, 2) }' | grep -vE "$own" | sort)
scripts=$(query --scripts)
for script in postinstall preuninstall postuninstall; do
	check "script $script is valid" sh -n <(awk -v s="$script" '/^(pre|post)[a-z]* (scriptlet|program)/ { on = index($0, s " ") == 1; next } on' <<<"$scripts")
done
mkdir -p "$work/rpmroot"
in_root() { rpm --root "$work/rpmroot" --dbpath /var/lib/rpm "$@"; }
check 'it installs into an empty root' in_root -i --nodeps --noscripts "$rpm"
check 'its binary runs' "$work/rpmroot/usr/bin/tributary" version
check 'rpm verifies every file' in_root -V --nodeps --noscripts tributary
echo '# mine' >>"$work/rpmroot/etc/tributary/config.toml"
check 'it erases' in_root -e --noscripts --nodeps tributary
check 'an edited configuration is saved, nothing else stays' equal "$(cd "$work/rpmroot" && find . -not -path './var/*' \( -type f -o -path '*tributary*' \) | xargs)" \
	'./etc/tributary ./etc/tributary/config.toml.rpmsave'

# dnf resolves it from a repository and runs its scripts, by a shell that the repository has, too.
mkdir -p "$work/dnf/repo" "$work/dnf/root/dev"
cp "$rpm" "$work/dnf/repo"
cat >"$work/dnf/shell.spec" <<'E1'
Name: shell
Version: 1
Release: 1
Summary: What the scripts of packages need
License: GPL-2.0-only
Provides: ca-certificates
%description
A shell.
%install
mkdir -p %{buildroot}/bin
cp /bin/busybox %{buildroot}/bin
for c in sh rm sleep cat find; do ln -s busybox %{buildroot}/bin/$c; done
%files
/bin/*
E1
check 'a repository with it' sh -ec "rpmbuild -bb --quiet --define '_topdir $work/dnf/build' --define '_rpmdir $work/dnf/repo' --define 'debug_package %{nil}' \
	--define '__os_install_post %{nil}' --define '_build_id_links none' '$work/dnf/shell.spec'; createrepo_c -q '$work/dnf/repo'"
mknod -m 666 "$work/dnf/root/dev/null" c 1 3
in_dnf() { # COMMAND ...: fails if a script does
	local out
	out=$(dnf --installroot="$work/dnf/root" --releasever=1 --setopt=reposdir=/dev/null --setopt=cachedir="$work/dnf/cache" --setopt=logdir="$work/dnf" \
		--setopt=persistdir="$work/dnf/persist" --repofrompath="tributary,file://$work/dnf/repo" --repo=tributary --nogpgcheck -y "$@" 2>&1) || { echo "$out"; return 1; }
	if grep -iE 'scriptlet failed|rpm-tmp.*:|error' <<<"$out"; then return 1; fi
}
check 'dnf installs it, with what it needs and recommends' in_dnf install tributary
check 'both are installed' equal "$(rpm --root "$work/dnf/root" -qa --qf '%{NAME}\n' | sort | xargs)" 'shell tributary'
check 'its binary runs there' chroot "$work/dnf/root" /usr/bin/tributary version
check 'dnf removes it' in_dnf remove tributary
check 'and nothing of it stays' equal "$(find "$work/dnf/root" -name '*tributary*' -not -path '*/var/*')" ''
cat >"$work/rpmlint.toml" <<'E2'
Filters = [
	"statically-linked-binary", # on purpose: it runs on every distribution
	"no-changelogname-tag", # /usr/share/doc/tributary/CHANGELOG.md
	"no-signature",
	"not-listed-as-documentation", # nfpm marks no files that a pattern names; only installations without documentation look at it
	"manpage-not-compressed", # SUSE takes xz
	"spelling-error",
	"invalid-license", # its list is SUSE's
	"non-standard-group|no-group-tag", # of the time before metadata
	"use-of-home-in-%preun", # it names the users whose programs still lead to Tributary
	"position-independent-executable-suggested|no-binary|unstripped-binary-or-object", # of programs in C
]
E2
# rpmlint unpacks by cpio, which would write to the machine's own /usr: the paths in the package are absolute.
mkdir "$work/unpack"
printf '#!/bin/sh\nexec /usr/bin/cpio --no-absolute-filenames "$@"\n' >"$work/unpack/cpio"
chmod 755 "$work/unpack/cpio"
check 'rpmlint finds no error' env PATH="$work/unpack:$PATH" rpmlint --config "$work/rpmlint.toml" "$rpm"
