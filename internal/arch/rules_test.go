package arch

// rule lists the packages of this module that a package may import. Folders below it follow the same rule and may import it, too.
type rule struct {
	imports []string // including folders below
	pure    bool
	tests   bool // also applies to its tests
}

// rules has a line for every package. Dependencies point one way: cli -> daemon -> {proxy, metrics} -> engine -> opening
// -> transfer -> {schedule, segment, estimate, health}.
var rules = map[string]rule{
	"cmd/tributary": {imports: []string{"internal/cli"}},

	"internal/cli": {imports: []string{
		"docs", "internal/config", "internal/control", "internal/daemon", "internal/demo", "internal/doctor", "internal/energy", "internal/fault", "internal/get",
		"internal/intercept", "internal/link", "internal/partial", "internal/power", "internal/privilege", "internal/redirect", "internal/relay", "internal/statefile", "internal/supervise",
		"internal/trace", "internal/transport", "internal/trust", "internal/use",
	}},
	"internal/control": {imports: []string{"internal/rights"}},
	"internal/admin":   {imports: []string{"internal/crowd", "internal/engine"}},
	"internal/page":    {imports: []string{"internal/control", "internal/engine", "internal/opening"}},
	"internal/doctor":  {imports: []string{"internal/config", "internal/link", "internal/mptcp"}},
	"internal/config":  {imports: []string{"internal/energy", "internal/mptcp", "internal/schedule"}}, // for the names
	"internal/power":   {imports: []string{"internal/energy"}},
	"internal/demo":    {imports: []string{"internal/link"}},
	"internal/daemon": {imports: []string{
		"internal/admin", "internal/config", "internal/control", "internal/crowd", "internal/doctor", "internal/engine", "internal/gateway", "internal/get",
		"internal/inbound", "internal/intercept", "internal/link", "internal/link/appbridge", "internal/metrics", "internal/page", "internal/partial",
		"internal/peer", "internal/proxy",
		"internal/queue", "internal/redirect", "internal/relay", "internal/rpc", "internal/statefile", "internal/transport",
	}},
	// Like every other user of a Transport, neither knows how it divides.
	"internal/inbound":   {imports: []string{"internal/peer"}},
	"internal/proxy":     {imports: []string{"internal/crowd", "internal/cutoff", "internal/fault", "internal/inbound", "internal/intercept", "internal/transport"}},
	"internal/intercept": {imports: []string{"internal/statefile"}},
	"internal/gateway":   {imports: []string{"internal/chain", "internal/crowd", "internal/fault", "internal/inbound", "internal/statefile", "internal/transport", "pkg/byterange"}},
	"internal/chain":     {imports: []string{"internal/transport"}},
	"internal/get":       {imports: []string{"internal/chain", "internal/fault", "pkg/byterange", "internal/partial", "internal/transport"}},
	"internal/partial":   {imports: []string{"internal/statefile"}},
	"internal/queue":     {imports: []string{"internal/get", "internal/partial", "internal/statefile"}},
	"internal/rpc":       {imports: []string{"internal/crowd", "internal/get", "internal/queue", "internal/statefile"}},
	"internal/metrics":   {imports: []string{"internal/engine", "internal/relay"}},
	"internal/engine": {imports: []string{
		"internal/energy", "internal/estimate", "internal/fault", "internal/health", "internal/link", "internal/opening", "internal/schedule", "internal/segment", "internal/transfer",
	}},
	"internal/origin":      {imports: []string{"internal/engine", "internal/fault", "internal/link", "internal/opening", "internal/segment", "internal/spread", "pkg/byterange"}},
	"internal/link":        {imports: []string{"internal/energy"}},
	"internal/mptcp":       {},
	"internal/relay":       {imports: []string{"internal/lanes", "internal/link", "internal/parallel", "internal/statefile"}},
	"internal/relay/setup": {},

	"internal/link/appbridge":               {imports: []string{"internal/allowance", "internal/link", "internal/rights"}},
	"internal/link/appbridge/appbridgetest": {},
	"internal/link/sockstest":               {},
	"internal/allowance":                    {imports: []string{"internal/statefile"}},
	"internal/crowd":                        {imports: []string{"internal/cutoff"}},
	"internal/cutoff":                       {},
	"internal/peer":                         {},
	"internal/privilege":                    {},
	"internal/rights":                       {},
	"internal/supervise":                    {imports: []string{"internal/peer"}},
	"internal/trust":                        {},
	"internal/statefile":                    {},
	"internal/docs":                         {},
	"internal/trace":                        {},
	"internal/use":                          {imports: []string{"internal/statefile", "internal/trust"}},
	"internal/redirect":                     {},
	// The codec of Range and Content-Range: the only place where ranges are inclusive, and a leaf, so all may read them.
	"pkg/byterange": {pure: true},

	"pkg/tributary":      {imports: []string{"internal/config", "internal/fault", "internal/transport", "pkg/byterange"}},
	"internal/transport": {imports: []string{"internal/allowance", "internal/config", "internal/energy", "internal/engine", "internal/estimate", "internal/fault", "internal/health", "internal/link", "internal/mptcp", "internal/opening", "internal/origin", "internal/relay", "internal/spread", "internal/statefile"}},

	"internal/opening": {pure: true, imports: []string{
		"internal/fault", "internal/health", "internal/segment", "internal/transfer", "pkg/byterange",
	}},
	"internal/transfer": {pure: true, imports: []string{
		"internal/energy", "internal/estimate", "internal/fault", "internal/health", "internal/parallel", "internal/schedule", "internal/segment",
	}},
	"internal/fault":    {pure: true},
	"internal/schedule": {pure: true, imports: []string{"internal/energy", "internal/segment"}},
	"internal/estimate": {pure: true},
	"internal/energy":   {pure: true},
	"internal/lanes":    {pure: true, imports: []string{"internal/estimate", "internal/parallel"}},
	"internal/parallel": {pure: true},
	"internal/health":   {pure: true},
	"internal/spread":   {pure: true},
	"internal/segment":  {pure: true, imports: []string{"pkg/byterange"}},
	"internal/arch":     {},
	"deploy":            {}, // files; its tests check them against the program
	"docs":              {},

	// The lab is its own module; nothing here depends on it.
	"lab/netlab":            {},
	"lab/cmd/tributary-lab": {imports: []string{"internal/energy", "internal/trace", "lab/netlab", "lab/sim"}},
	"lab/e2e":               {tests: true, imports: []string{"lab/netlab", "internal/docs", "internal/link/appbridge/appbridgetest", "internal/link/sockstest"}}, // knows the product only as a program
	"lab/contract":          {tests: true, imports: []string{"lab/netlab", "pkg/tributary"}},                                                                     // uses the public API only
	"lab/httprules":         {},
	"lab/pac":               {tests: true, imports: []string{"internal/admin", "internal/engine"}},
	"lab/mutate":            {imports: []string{"lab/httprules"}},
	"lab/sim":               {pure: true, imports: []string{"internal/energy", "internal/estimate", "internal/fault", "internal/health", "internal/schedule", "internal/segment", "internal/transfer"}},
}

const pureReason = "the state machine, the simulator and the tests drive the very same code: time comes in as an " +
	"argument, deadlines go out as results, I/O and goroutines belong to the engine"

// pureImports are the packages that PURE packages must not import, including folders below.
var pureImports = []string{
	"net", "os", "context", "log", "sync", "syscall", "math/rand", "github.com/prometheus", "golang.org/x",
}

// pureExcepted are exceptions to pureImports: a codec of text, and randomness from a seed (see seeded).
var pureExcepted = []string{"net/url", "math/rand/v2"}

// pureCalls are the functions that read a clock or start a timer.
var pureCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"},
}

// seeded are the functions of math/rand/v2 that do not use the global source.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf"}

// reserved are imports that only a few packages may have.
var reserved = []struct {
	path   string // including folders below
	only   []string
	reason string
}{
	{
		"github.com/prometheus",
		[]string{"internal/metrics"},
		"the engine sends events to observers and knows none of them; another way to show them must not touch it",
	},
	{
		"github.com/vishvananda",
		[]string{"internal/link", "internal/mptcp", "lab"},
		"the list of links has one source, where a host app on a phone takes the place of netlink",
	},
	{
		"github.com/spf13",
		[]string{"internal/cli", "internal/docs", "lab"}, // docs parses the command lines in the pages
		"flags end where the configuration begins",
	},
	{
		"github.com/vbauerster/mpb",
		[]string{"internal/cli"},
		"bars are drawn where a terminal is known",
	},
	{
		"github.com/BurntSushi/toml",
		[]string{"internal/config", "internal/energy", "internal/use", "lab"},
		"the file's format is known to the configuration only; internal/use reads files of other programs, internal/energy its own",
	},
}

// listing are the functions of package net that list interfaces.
var listing = []string{"Interfaces", "InterfaceAddrs", "InterfaceByName", "InterfaceByIndex"}

// mayList are the packages that may call them.
var mayList = []string{"internal/link", "lab"}

// retired are words that no identifier may contain, with their replacements: each was one of several words for one thing, or had
// several meanings.
var retired = map[string]string{
	"appetite": "consumption", "blamed": "Blame", "book": "History, Accounts", "doubt": "disablePipelining", "failover": "hedge",
	"headed": "HeadReceived", "hearsay": "silenceGrace", "hosted": "appBridge", "journal": "eventLog", "keeper": "watchdog, Revalidator",
	"lap": "contender", "outward": "Transport", "pardon": "unbanAll", "patience": "WaitForLink, or what is waited for",
	"relieve": "steal", "rescue": "hedge", "sated": "hasEnough", "takeover": "hedge", "tally": "counters", "tenure": "checkout",
	"why": "Outcome, Rule, Reason or Cause",
}

// vague are package names that do not describe a package.
var vague = []string{"util", "utils", "common", "types", "helpers", "helper", "misc", "base", "shared"}

// maxLines is the maximum number of lines of a file: one concept each.
const maxLines = 700
