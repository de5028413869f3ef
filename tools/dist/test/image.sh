# shellcheck shell=bash disable=SC2154
# Part of ../test.sh: the image, in the network of the machine with two links.
say 'The image'
heading='podman and Docker: the image'
archive=$(echo "$files"/tributary_*_oci.tar)
mkdir -p "$work/image/files"
cp "$archive" "$work/image/files"
# runc, since crun refuses machines with control groups of both versions; limits that root may set without CAP_SYS_RESOURCE.
cat >"$work/image/containers.conf" <<-END
	[engine]
	runtime = "runc"
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	[containers]
	log_driver = "k8s-file"
	default_ulimits = ["nofile=1024:$(ulimit -Hn)", "nproc=1024:1024"]
END
cat >"$work/image/storage.conf" <<-END
	[storage]
	driver = "vfs"
	graphroot = "$work/image/root"
	runroot = "$work/image/run"
END
# on_machine runs commands in the machine's network with a podman of this test. "ip netns exec" would hide /sys/fs/cgroup.
on_machine() {
	nsenter --net="/run/netns/$machine" env CONTAINERS_CONF="$work/image/containers.conf" CONTAINERS_STORAGE_CONF="$work/image/storage.conf" \
		sh -ec "cd '$work/image/files'; $1"
}
forget_containers() { on_machine 'podman rm --all --force --time 0; podman volume prune --force' >/dev/null 2>&1; }
podman_clean=forget_containers # for finish

for arch in amd64 arm64 arm riscv64; do
	check "there is one for $arch" equal "$(skopeo inspect --override-arch $arch --override-os linux "oci-archive:$archive" | jq -r .Architecture)" $arch
done
check 'the documented installation' on_machine "$(documented "$heading" 1)"
check 'it runs' eventually ip netns exec "$machine" curl -sf -o /dev/null -r 0-0 -x http://127.0.0.1:8080 "$url"
check 'the documented checks' on_machine "$(documented "$heading" 2)"
check 'a download over both links, of the right bytes' both_links ip netns exec "$machine" \
	sh -c "setpriv --reuid 65534 --clear-groups curl -sf -x http://127.0.0.1:8080 $url | cmp - '$work/www/big.iso'"
inside_image=$(on_machine 'podman inspect --format "{{.State.Pid}}" tributary')
check 'as user 65532' equal "$(awk '/^Uid:/ { print $2, $3, $4 }' "/proc/$inside_image/status")" '65532 65532 65532'
check 'without a capability' equal "$(awk '/^Cap(Eff|Bnd|Prm):/ { print $2 }' "/proc/$inside_image/status" | sort -u)" 0000000000000000
check 'its root cannot be written to' refused touch "/proc/$inside_image/root/file"
check 'there is no shell in it' refused on_machine 'podman exec tributary sh -c true'
check 'one binary and five other files, no more' equal "$(cd "$work/image" && on_machine 'podman export tributary' | tar -t | grep -vE '/$' | grep -vE '^(dev|proc|sys|run/.containerenv|etc/(hosts|hostname|resolv.conf|mtab))' | wc -l)" 5
printf 'allow_users = []\n' >"$work/image/files/config.toml"
chmod 755 "$work/image" "$work/image/files"
check 'the documented configuration and volume' on_machine "$(documented "$heading" 3)"
check 'the configuration counts: 403' eventually sh -c \
	"ip netns exec $machine setpriv --reuid 65534 --clear-groups curl -s -o /dev/null -w '%{http_code}' -x http://127.0.0.1:8080 $url | grep -x 403"
check 'a reload' on_machine 'podman kill --signal HUP tributary'
check 'skopeo copies it' skopeo copy --all "oci-archive:$archive" "dir:$work/image/copy"
check 'the documented removal' on_machine "$(documented "$heading" 5)"
check 'no image is left' equal "$(on_machine 'podman images --quiet')" ''
