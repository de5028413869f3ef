# `make` lists the targets: the text after ## is the help.

GO      ?= go
VERSION := $(shell tools/version.sh)
LDFLAGS := -X main.version=$(VERSION)
FUZZTIME ?= 30s
ROUNDS  ?= 9

# Tests of other programs' behaviour need these Debian packages: "command:package", "-:package" if it has no command.
# `make test` as root installs what is missing.
DEBIAN := nginx:nginx-light curl:curl ip:iproute2 nft:nftables iptables:iptables wget:wget python3:python3 -:python3-requests gcc:gcc -:libc6-dev \
	apache2:apache2-bin lighttpd:lighttpd -:lighttpd-mod-openssl aria2c:aria2 git:git -:python3-pip \
	systemd-analyze:systemd promtool:prometheus aapt:aapt sshd:openssh-server ssh:openssh-client zbarimg:zbar-tools

# Those that are too large for `make test`; `make matrix` installs them, too.
MATRIX := node:nodejs npm:npm chromium:chromium firefox-esr:firefox-esr rclone:rclone -:python3-boto3 skopeo:skopeo podman:podman docker-registry:docker-registry \
	nix-store:nix-bin dockerd:docker.io -:python3-venv dnf:dnf createrepo_c:createrepo-c rpmbuild:rpm debootstrap:debootstrap systemd-nspawn:systemd-container

# Those of `make dist` and `make dist-test`.
DIST := jq:jq
DIST_TEST := curl:curl openssl:openssl ip:iproute2 nginx:nginx-light debootstrap:debootstrap systemd-nspawn:systemd-container rpm:rpm rpmlint:rpmlint \
	dnf:dnf createrepo_c:createrepo-c rpmbuild:rpm busybox:busybox-static lintian:lintian mandoc:mandoc podman:podman runc:runc skopeo:skopeo bc:bc unzip:unzip file:file

# Those of `make android` and `make android-test`, beside a JDK and Maven.
ANDROID := aapt:aapt apksigner:apksigner zipalign:zipalign dexdump:dexdump readelf:binutils qemu-aarch64-static:qemu-user-static shellcheck:shellcheck mksh:mksh strace:strace busybox:busybox-static zip:zip unzip:unzip

.PHONY: race pictures android android-test dist dist-test help build lab test matrix lint httpdoc programdoc fuzz mutate sim bench demo clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile

build: ## build bin/tributary
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/tributary ./cmd/tributary

lab: ## build bin/tributary-lab, the developers' tool (running it takes root)
	@mkdir -p bin
	$(GO) build -C lab -trimpath -ldflags '$(LDFLAGS)' -o ../bin/tributary-lab ./cmd/tributary-lab

test: ## go vet and all tests of the product and the laboratory; as root it installs the Debian packages they need
	@GO='$(GO)' DEBIAN='$(DEBIAN)' tools/test.sh

race: ## the same with the race detector on all packages that have goroutines, and on the program in a third of the end-to-end tests
	@GO='$(GO)' DEBIAN='$(DEBIAN)' RACE_ALL=1 tools/test.sh

matrix: ## every real client and origin, Caddy (from its module), browsers and Node too (root)
	@GO='$(GO)' DEBIAN='$(DEBIAN) $(MATRIX)' tools/matrix.sh

pictures: ## pictures of the live page while it runs, for docs/pictures (root; chromium)
	@mkdir -p docs/pictures
	PATH="$$PATH:/usr/sbin:/sbin" TRIBUTARY_PICTURES='$(CURDIR)/docs/pictures' $(GO) test -C lab -count=1 -run '^TestLivePage$$' ./e2e

lint: ## gofumpt, staticcheck and govulncheck on the product and the laboratory; vale on docs, comments, messages and help
	@GO='$(GO)' tools/lint.sh

httpdoc: ## write docs/HTTP.md, which is not committed: docs/http-rules.toml with the tests of each rule
	$(GO) test -C lab -count=1 -run TestHTTPDoc ./httprules -args -update

programdoc: ## write the table of programs in docs/RUN.md from lab/e2e/programs.toml
	$(GO) test -C lab -count=1 -run '^TestRunProgramsDoc$$' ./e2e -args -update

fuzz: ## run every fuzz test for FUZZTIME (30s), 20,000 random requests against a direct fetch, and 12,000 transfers under random faults
	@GO='$(GO)' FUZZTIME='$(FUZZTIME)' tools/fuzz.sh

mutate: ## break guarding lines, in a copy: the tests must notice; 15 drawn by lot, or ARGS='R37 core', ARGS=--all, ARGS=--help
	@cd lab && PATH="$$PATH:/usr/sbin:/sbin" $(GO) run ./mutate $(ARGS)

sim: ## the simulator at length: 1,000 random transfers of the default scheduler, 100 of each other one, every row of the tables in docs; lanes: 1,000 seeds of each scheduler
	SIM_LONG=1 $(GO) test -C lab -count=1 -v -run 'Invariants|SameLog|Summary|Reproduction' ./sim
	SIM_LONG=1 $(GO) test -count=1 -v -run 'EveryByte|Beside|Lossy|Schedulers' ./internal/core/lanes

bench: build lab ## the rows of docs/BENCHMARKS.md, which it rewrites, and plots in bin/plots, 9 rounds: about 200 minutes (root)
	bin/tributary-lab bench --all --rounds $(ROUNDS) --congestion bbr --congestion cubic --svg bin/plots

android: ## the app for each architecture and the module for rooted phones: android/out/tributary-*.apk, tributary-module.zip
	@DEBIAN='$(ANDROID)' bash -c '. tools/debian.sh && need_packages'
	$(MAKE) -C android apk apk-check module GO='$(GO)'

android-test: ## the app's core in a JVM; its screens on six versions of Android, and their pictures; the phones' programs under emulation: module in a chroot, host mode in the lab, system calls, tests of their packages (root)
	@DEBIAN='$(DEBIAN) $(ANDROID)' bash -c '. tools/debian.sh && need_packages'
	$(MAKE) -C android fetch-test java-test screens-test pictures-test java-host-test module-test host-test seccomp-test go-test GO='$(GO)'

dist: ## binaries, .deb, .rpm, image, bill of materials and checksums of this commit in dist, the same bytes everywhere
	@DEBIAN='$(DIST)' bash -c '. tools/debian.sh && need_packages'
	@GO='$(GO)' VERSION='$(VERSION)' tools/dist/dist.sh

dist-test: ## build all of dist twice and compare; install, use, upgrade and purge the packages; run the image (root)
	@DEBIAN='$(DIST) $(DIST_TEST)' bash -c '. tools/debian.sh && need_packages'
	@GO='$(GO)' VERSION='$(VERSION)' tools/dist/test.sh

demo: build ## two emulated links, one download: under 60 s, no root, no network
	bin/tributary demo

clean: ## remove what the targets above made
	rm -rf bin dist
	find . -name '*.test' -o -name '*.prof' | xargs -r rm -f
