package control

import "time"

// StatusPath is the path of the Status.
const StatusPath = "/status"

// Status is the state of a running proxy. Rates are bytes per second, times seconds.
type Status struct {
	Version   string     `json:"version"`
	PID       int        `json:"pid"`
	Listen    string     `json:"listen"`
	Page      string     `json:"page,omitempty"` // address of the live page
	Started   time.Time  `json:"started"`
	At        time.Time  `json:"at"`
	Links     []Link     `json:"links"`
	Transfers []Transfer `json:"transfers"`
	Tunnels   int        `json:"tunnels"`
	Undivided int        `json:"undivided_running"` // tunnels and undivided requests that move data now: they count like downloads
	Passed    int64      `json:"passed_through"`    // GETs that did not become transfers, since the start
	Ended     int64      `json:"ended_transfers"`
	Budget    Budget     `json:"budget"`
	Accounts  []Account  `json:"accounts,omitempty"` // those with a data limit
	VPN       *VPN       `json:"vpn,omitempty"`      // nil = none carries what the system sends
	Relay     *Relay     `json:"relay,omitempty"`    // nil = none is used
}

// Relay is the server that carries tunnels over all links.
type Relay struct {
	Refusal string `json:"refusal,omitempty"` // why it refuses tunnels at the moment; they go over one link
	Address string `json:"address"`
	Lanes   []Lane `json:"lanes"` // one for each link that may have one
	Tunnels int    `json:"tunnels"`
	// Multipath is set if the server is a proxy that is reached by MPTCP and has no lanes.
	Multipath *Multipath `json:"mptcp,omitempty"`
}

// Multipath is what the kernel says of the tunnels through a proxy.
type Multipath struct {
	Subflows int `json:"subflows"` // of all tunnels: 1 for each link that carries one
	Plain    int `json:"plain"`    // tunnels without MPTCP
}

// Lane is the connection to the relay over one link.
type Lane struct {
	Link    string  `json:"link"`
	Up      bool    `json:"up"`
	RTT     float64 `json:"rtt_seconds,omitempty"`
	Failure string  `json:"failure,omitempty"`
	Code    string  `json:"code,omitempty"` // of the failure, for programs: see relay.Code
}

// VPN is a VPN that carries the system's own traffic to the internet.
type VPN struct {
	Interfaces []string `json:"interfaces"`
	Mode       string   `json:"mode"` // "follow" or "around"
}

// Account is the remaining data of links that are counted together. Fields of limits that are not set are left out.
type Account struct {
	Name    string `json:"name"`
	Since   string `json:"since"` // first day of the month that is counted, "2026-11-15"
	Monthly *Quota `json:"monthly,omitempty"`
	Daily   *Quota `json:"daily,omitempty"`
}

// Quota is a limit in bytes, and what is left of it.
type Quota struct {
	Limit int64 `json:"limit_bytes"`
	Left  int64 `json:"left_bytes"`
}

// Link is a link of a Status.
type Link struct {
	Name    string  `json:"name"`
	State   string  `json:"state"` // up, suspect, banned, probing, down
	Reason  string  `json:"reason,omitempty"`
	Goodput float64 `json:"goodput_bytes_per_second"` // tunnels and undivided requests included, these in both directions
	RTT     float64 `json:"rtt_seconds"`
	Bytes   int64   `json:"bytes"` // the same
	Waste   int64   `json:"waste_bytes"`
	Bans    int64   `json:"bans"`
	// Undivided is how many tunnels and undivided requests are open, and UndividedBytes what they carried.
	Undivided      int   `json:"undivided"`
	UndividedBytes int64 `json:"undivided_bytes"`
	// RadioJoules is what its radio has taken for downloads by the model, and RadioState what it does; "" = its radio is not
	// known.
	RadioJoules float64 `json:"radio_joules,omitempty"`
	RadioState  string  `json:"radio_state,omitempty"`
	// MonthlyLeft is the traffic it may still carry this month, or today if that is less; nil = no limit.
	MonthlyLeft *int64 `json:"monthly_left_bytes,omitempty"`
	// Used is what its account has carried; nil = it is not counted, since it has no limit.
	Used *Used `json:"used,omitempty"`
}

// Used is the traffic of an account in bytes, headers included. A limit of 0 is none.
type Used struct {
	Today      int64 `json:"today_bytes"`
	Month      int64 `json:"month_bytes"`
	DayLimit   int64 `json:"day_limit_bytes,omitempty"`
	MonthLimit int64 `json:"month_limit_bytes,omitempty"`
}

// Transfer is a running transfer of a Status. Offsets count from the beginning of the object.
type Transfer struct {
	ID uint64 `json:"id"`
	// Host and Name of the object, the last part of its path, are for the live page: the socket tells neither.
	Host, Name string `json:"-"`

	Size    int64       `json:"size"` // -1 = unknown
	Offset  int64       `json:"head"` // delivered up to here
	Held    int64       `json:"held_bytes"`
	Window  int64       `json:"window_bytes"`
	Seconds float64     `json:"seconds"`
	Links   []LinkShare `json:"links"`
	LeftOut []LeftOut   `json:"left_out,omitempty"` // links that are up, but not used for this one for now
}

// LinkShare is the part of one transfer that a link has delivered.
type LinkShare struct {
	Link  string `json:"link"`
	Bytes int64  `json:"bytes"`
}

// LeftOut is a link that a transfer does not use for now.
type LeftOut struct {
	Link   string `json:"link"`
	Reason string `json:"reason"`
}

// Budget is the memory for reordering.
type Budget struct {
	Total   int64 `json:"total_bytes"`
	Granted int64 `json:"granted_bytes"`
	Held    int64 `json:"held_bytes"`
}
