// The laboratory: what tests, measures and draws Tributary, and what that needs. See README.md.
module github.com/tributary-http/tributary/lab

go 1.26.0

toolchain go1.26.8

replace github.com/tributary-http/tributary => ../

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/dop251/goja v0.0.0-20260917113740-793a2a65c13b
	github.com/spf13/cobra v1.10.2
	github.com/tributary-http/tributary v0.0.0-00010101000000-000000000000
	github.com/vishvananda/netlink v1.3.1
	github.com/vishvananda/netns v0.0.5
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/dlclark/regexp2/v2 v2.5.2 // indirect
	github.com/go-sourcemap/sourcemap v2.1.3+incompatible // indirect
	github.com/google/pprof v0.0.0-20230207041349-798e818bf904 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)
