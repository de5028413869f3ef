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
	Draining  bool       `json:"draining,omitempty"` // it finishes what runs, and accepts nothing new
	At        time.Time  `json:"at"`
	Links     []Link     `json:"links"`
	Transfers []Transfer `json:"transfers"`
	Tunnels   int        `json:"tunnels"`
	// tunnels and undivided requests that move data now; they count like downloads
	Undivided int       `json:"undivided_running"`
	Passed    int64     `json:"passed_through"` // GETs that did not become transfers, since the start
	Ended     int64     `json:"ended_transfers"`
	Budget    Budget    `json:"budget"`
	Accounts  []Account `json:"accounts,omitempty"` // those with a data limit
	VPN       *VPN      `json:"vpn,omitempty"`      // nil = no VPN carries the system's traffic
	Relay     *Relay    `json:"relay,omitempty"`    // nil = no relay is used
	// downloads that ended last, the latest first; they have no names here
	Finished []Finished `json:"finished,omitempty"`
}

// Finished is a download that was divided over the links and has ended.
type Finished struct {
	Result  string      `json:"result"` // "ok", "client_gone", or what is to blame: "link", "origin", "path" or "local"
	At      time.Time   `json:"at"`
	Seconds float64     `json:"seconds"`
	Bytes   int64       `json:"bytes"` // bytes delivered to its client
	Links   []LinkShare `json:"links"`
}

// Relay is the server that carries tunnels over all links.
type Relay struct {
	Refusal string `json:"refusal,omitempty"` // why it currently refuses tunnels, which then use one link
	Address string `json:"address"`
	Lanes   []Lane `json:"lanes"` // one for each link that may have one
	Tunnels int    `json:"tunnels"`
	Failed  int64  `json:"failed"`            // tunnels that it did not carry since the start; they use one link
	Failure string `json:"failure,omitempty"` // reason of the last of them
}

// Lane is the connection to the relay over one link.
type Lane struct {
	Link    string  `json:"link"`
	Up      bool    `json:"up"`
	Bytes   int64   `json:"bytes"` // carried since the start, both directions; counted in Link.Bytes too
	RTT     float64 `json:"rtt_seconds,omitempty"`
	Failure string  `json:"failure,omitempty"`
	Code    string  `json:"code,omitempty"` // of the failure, for programs; see relay.Code
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

// Link is a link of a Status.
type Link struct {
	Name   string `json:"name"`
	State  string `json:"state"` // up, suspect, banned, probing, down
	Reason string `json:"reason,omitempty"`
	// includes tunnels, undivided requests and lanes to a relay, in both directions
	Goodput float64 `json:"goodput_bytes_per_second"`
	RTT     float64 `json:"rtt_seconds"`
	Bytes   int64   `json:"bytes"` // counted like Goodput
	Waste   int64   `json:"waste_bytes"`
	Bans    int64   `json:"bans"`
	// Undivided is the number of open tunnels and undivided requests, and UndividedBytes is their traffic and that of
	// lanes.
	Undivided      int   `json:"undivided"`
	UndividedBytes int64 `json:"undivided_bytes"`
	// RadioJoules is the energy that the link's radio used for downloads according to the model, and RadioState is its
	// current state; "" = the radio is unknown.
	RadioJoules float64 `json:"radio_joules,omitempty"`
	RadioState  string  `json:"radio_state,omitempty"`
	// MonthlyLeft is the traffic in bytes that the link may still carry this month, or today if that is less; nil = no
	// limit.
	MonthlyLeft *int64 `json:"monthly_left_bytes,omitempty"`
	// Used is the traffic of the link's account; nil = not counted, since there is no limit.
	Used *Used `json:"used,omitempty"`
}

// Used is the traffic of an account in bytes, including headers. A limit of 0 means no limit.
type Used struct {
	Today      int64 `json:"today_bytes"`
	Month      int64 `json:"month_bytes"`
	DayLimit   int64 `json:"day_limit_bytes,omitempty"`
	MonthLimit int64 `json:"month_limit_bytes,omitempty"`
}

// Transfer is a running transfer of a Status. Offsets count from the beginning of the object.
type Transfer struct {
	ID uint64 `json:"id"`
	// Host is the host of the object, and Name the last part of its path. They are for the live page; the socket reports
	// neither.
	Host, Name string `json:"-"`

	Size    int64       `json:"size"` // -1 = unknown
	Offset  int64       `json:"head"` // end of the delivered part
	Held    int64       `json:"held_bytes"`
	Window  int64       `json:"window_bytes"`
	Seconds float64     `json:"seconds"`
	Links   []LinkShare `json:"links"`
	LeftOut []LeftOut   `json:"left_out,omitempty"` // links that are up but currently not used for this transfer
}

// LinkShare is the part of a transfer that a link delivered.
type LinkShare struct {
	Link  string `json:"link"`
	Bytes int64  `json:"bytes"`
}

// LeftOut is a link that a transfer currently does not use.
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
