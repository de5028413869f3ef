package netlab

import (
	"os"
	"os/exec"
)

// skipper is the part of testing.TB that Require needs.
type skipper interface {
	Helper()
	Skip(...any)
}

// missing returns the reason why no lab can run here, or "" if one can.
func missing() string {
	if os.Geteuid() != 0 {
		return "it needs root"
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return "/dev/net/tun is missing: modprobe tun"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "ip is not installed: apt-get install iproute2"
	}
	return ""
}

// Require skips the test if no lab can run here, and says why.
func Require(t skipper) {
	t.Helper()
	reason := missing()
	if _, err := exec.LookPath("nginx"); reason == "" && err != nil {
		reason = "nginx is not installed: apt-get install nginx-light"
	}
	if reason != "" {
		t.Skip("lab: " + reason)
	}
}
