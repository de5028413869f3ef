package arch

// rule lists the packages of this module that the packages in a folder may import, in addition to those of the folder itself. The
// rules of the folders above apply, too.
type rule struct {
	imports []string // including folders below
	apart   bool     // the packages in the folder do not import each other, except where their own rules say so
	pure    bool
	tests   bool // also applies to its tests
}

// rules has a line for each floor, and for the packages that may import more than others on their floor. Dependencies point one way:
// front -> net -> {core, host}. Go itself refuses cycles within a floor.
var rules = map[string]rule{
	"internal/core": {pure: true},
	"internal/host": {},
	"internal/net":  {imports: []string{"internal/config", "internal/core", "internal/host"}},
	// The doors get every byte through a Transport, and do not know how it divides requests.
	"internal/front":           {imports: []string{"internal/core", "internal/host", "internal/net/transport"}, apart: true},
	"internal/front/admin":     {imports: []string{"internal/front/admission", "internal/net/engine"}},
	"internal/front/admission": {imports: []string{"internal/front/cutoff"}},
	"internal/front/gateway":   {imports: []string{"internal/front/chain", "internal/front/admission", "internal/front/inbound"}},
	"internal/front/get":       {imports: []string{"internal/front/chain"}},
	"internal/front/metrics":   {imports: []string{"internal/net/engine", "internal/net/relay"}},
	"internal/front/control":   {imports: []string{"internal/net/engine", "internal/net/relay"}},
	"internal/front/page":      {imports: []string{"internal/front/control", "internal/net/engine"}},
	"internal/front/proxy":     {imports: []string{"internal/front/admission", "internal/front/cutoff", "internal/front/inbound", "internal/front/intercept"}},
	"internal/front/queue":     {imports: []string{"internal/front/get"}},
	"internal/front/rpc":       {imports: []string{"internal/front/admission", "internal/front/get", "internal/front/queue"}},

	"internal/config":     {imports: []string{"internal/core"}}, // for the names
	"internal/demo":       {imports: []string{"internal/net/link"}},
	"internal/doctor":     {imports: []string{"internal/config", "internal/net"}},
	"internal/docs":       {},
	"internal/arch":       {},
	"internal/daemon":     {imports: []string{"internal/config", "internal/core", "internal/doctor", "internal/front", "internal/host", "internal/net"}},
	"internal/systemtest": {}, // tests only
	"internal/cli":        {imports: []string{"docs", "internal"}},
	"cmd/tributary":       {imports: []string{"internal/cli"}},
	"pkg/tributary":       {imports: []string{"internal/config", "internal/core", "internal/net/transport"}},
	"deploy":              {}, // files; its tests check them against the program
	"docs":                {},

	// The lab is its own module; nothing here depends on it.
	"lab/netlab":            {},
	"lab/cmd/tributary-lab": {imports: []string{"internal/cli", "internal/core", "internal/host/statefile", "internal/net/trace", "lab/literature", "lab/netlab", "lab/power", "lab/sim"}},
	"lab/e2e":               {tests: true, imports: []string{"lab/netlab", "internal/docs", "internal/net/link/appbridge/appbridgetest", "internal/net/link/sockstest"}}, // knows the product only as a program
	"lab/contract":          {tests: true, imports: []string{"lab/netlab", "pkg/tributary"}},                                                                             // uses the public API only
	"lab/power":             {imports: []string{"internal/core/energy"}},
	"lab/literature":        {pure: true, imports: []string{"internal/core"}},
	"lab/httprules":         {},
	"lab/pac":               {tests: true, imports: []string{"internal/front/admin", "internal/net/engine"}},
	"lab/mutate":            {imports: []string{"lab/httprules"}},
	"lab/sim":               {pure: true, imports: []string{"internal/core", "lab/literature"}},
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
		[]string{"internal/front/metrics"},
		"the engine sends events to observers and knows none of them; another way to show them must not touch it",
	},
	{
		"github.com/vishvananda",
		[]string{"internal/net/link", "lab"},
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
		[]string{"internal/config", "internal/core/energy", "internal/host/use", "lab"},
		"the file's format is known to the configuration only; internal/host/use reads files of other programs, internal/core/energy its own",
	},
}

// listing are the functions of package net that list interfaces.
var listing = []string{"Interfaces", "InterfaceAddrs", "InterfaceByName", "InterfaceByIndex"}

// mayList are the packages that may call them.
var mayList = []string{"internal/net/link", "lab"}

// retired are words that no identifier may contain, with their replacements: each was one of several words for one thing, or had
// several meanings.
var retired = map[string]string{
	"appetite": "consumption", "blamed": "Blame", "book": "History, Accounts", "camp": "group",
	"crowd": "crossTraffic", "doubt": "disablePipelining", "excuse": "expectNothing", "failover": "hedge",
	"headed": "HeadReceived", "hearsay": "SuspectAfter", "heed": "what it does", "hosted": "appBridge",
	"journal": "eventLog", "keeper": "watchdog, Revalidator", "lap": "contender", "outward": "Transport",
	"pardon": "unbanAll", "patience": "WaitForLink, or what is waited for", "relieve": "steal",
	"rescue": "hedge", "sated": "hasEnough", "strand": "unusable", "takeover": "hedge", "tally": "counters",
	"tenure": "checkout", "vigil": "deadPeer", "why": "Outcome, Rule, Reason or Cause",
}

// vague are package names that do not describe a package.
var vague = []string{"util", "utils", "common", "types", "helpers", "helper", "misc", "base", "shared"}

// maxLines is the maximum number of lines of a file: one concept each.
const maxLines = 700
