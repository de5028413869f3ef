package control

import (
	"os"
	"time"

	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// StatusPath is the path of the Status.
const StatusPath = "/status"

// Status is the state of a running proxy. Rates are bytes per second, times seconds.
type Status struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Listen  string `json:"listen"`
	// Namespace is that of the network in which the proxy runs, see Namespace; "" = unknown.
	Namespace string                  `json:"network_namespace,omitempty"`
	Page      string                  `json:"page,omitempty"` // address of the live page
	Started   time.Time               `json:"started"`
	Draining  bool                    `json:"draining,omitempty"` // it finishes what runs, and accepts nothing new
	At        time.Time               `json:"at"`
	Links     []engine.LinkStatus     `json:"links"`
	Transfers []engine.TransferStatus `json:"transfers"`
	Tunnels   int                     `json:"tunnels"`
	// tunnels and undivided requests that move data now; they count like downloads
	Undivided int           `json:"undivided_running"`
	Passed    int64         `json:"passed_through"` // GETs that did not become transfers, since the start
	Ended     int64         `json:"ended_transfers"`
	Budget    engine.Memory `json:"budget"`
	Accounts  []Account     `json:"accounts,omitempty"` // those with a data limit
	VPN       *VPN          `json:"vpn,omitempty"`      // nil = no VPN carries the system's traffic
	Relay     *relay.Status `json:"relay,omitempty"`    // nil = no relay is used
	// downloads that ended last, the latest first; they have no names here
	Finished []Finished `json:"finished,omitempty"`
}

// Namespace returns the name of this process's network namespace, "net:[4026531840]"; "" = unknown.
func Namespace() string {
	name, _ := os.Readlink("/proc/self/ns/net") // fails without /proc, and where the kernel has no namespaces
	return name
}

// Finished is a download that was divided over the links and has ended.
type Finished struct {
	// "ok", "client_gone", or what is to blame: "link", "origin", "path" or "local"
	Result  string             `json:"result"`
	At      time.Time          `json:"at"`
	Seconds float64            `json:"seconds"`
	Bytes   int64              `json:"bytes"` // bytes delivered to its client
	Links   []engine.LinkBytes `json:"links"`
}

// VPN is a VPN that carries the system's own traffic to the internet.
type VPN struct {
	Interfaces []string `json:"interfaces"`
	Mode       string   `json:"mode"` // "follow" or "around"
}

// Account is the remaining data of links that are counted together. Limits that are not set are left out.
type Account struct {
	Name    string `json:"name"`
	Since   string `json:"since"` // first day of the current month of the account, such as "2026-11-15"
	Monthly *Quota `json:"monthly,omitempty"`
	Daily   *Quota `json:"daily,omitempty"`
}

// Quota is a limit and its remainder, in bytes.
type Quota struct {
	Limit int64 `json:"limit_bytes"`
	Left  int64 `json:"left_bytes"`
}
