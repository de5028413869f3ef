package e2e

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/tributary-http/tributary/lab/netlab"
)

var update = flag.Bool("update", false, "write the table of programs in docs/RUN.md")

//go:embed programs.toml
var programList string

// runProgram is a row: a command that downloads over https, and how it does that under `tributary run`.
type runProgram struct {
	Name   string `toml:"name"`
	Run    string `toml:"run"`    // the command, which writes the object at $URL to the file out
	Direct string `toml:"direct"` // assignments for the run without Tributary only: how a built-in list learns of the lab's authority
	Debian string `toml:"debian"` // packages that bring it: tools/programs.sh installs those of programs.toml
	PyPI   string `toml:"pypi"`
	NPM    string `toml:"npm"`
	Cargo  string `toml:"cargo"` // dependencies of a program of testdata
	Go     string `toml:"go"`    // modules' programs, with their versions
	Tool   string `toml:"tool"`  // what else brings it

	// What is expected: "all", "one", "fails at first", "fails" (three times) or "as without run" (where
	// the direct run fails), each with ": reason" except "all".
	Plain string `toml:"plain"`
	Store string `toml:"store"`
}

// programs returns the rows.
func programs(t *testing.T) []runProgram {
	t.Helper()
	var file struct {
		Program []runProgram `toml:"program"`
	}
	meta, err := toml.Decode(programList, &file)
	if err != nil || len(meta.Undecoded()) > 0 {
		t.Fatalf("programs.toml: %v, unknown keys %v", err, meta.Undecoded())
	}
	outcomes := []string{"all", "one", "fails at first", "fails", "as without run"}
	seen := map[string]bool{}
	for _, p := range file.Program {
		for _, want := range []string{p.Plain, p.Store} {
			outcome, reason, _ := strings.Cut(want, ": ")
			if !slices.Contains(outcomes, outcome) || (outcome == "all") != (reason == "") {
				t.Errorf("programs.toml: %s: %q is no expectation", p.Name, want)
			}
		}
		if p.Name == "" || p.Run == "" || seen[p.Name] || p.from() == "" {
			t.Errorf("programs.toml: %q lacks a name of its own, a command or a source", p.Name)
		}
		seen[p.Name] = true
	}
	return file.Program
}

// from says where the program is from.
func (p runProgram) from() string {
	var from []string
	for _, s := range []struct{ source, packages string }{
		{"Debian", p.Debian},
		{"PyPI", p.PyPI},
		{"npm", p.NPM},
		{"crates.io", p.Cargo},
		{"Go", p.Go},
	} {
		if s.packages != "" {
			from = append(from, s.source+" "+s.packages)
		}
	}
	if p.Tool != "" {
		from = append(from, p.Tool)
	}
	return strings.Join(from, ", ")
}

// outcome returns an expectation without its reason.
func outcome(want string) string {
	outcome, _, _ := strings.Cut(want, ": ")
	return outcome
}

// programTable renders the rows for docs/RUN.md.
func programTable(rows []runProgram) string {
	var b strings.Builder
	plain, store := map[string]int{}, map[string]int{}
	b.WriteString("| program | from | `run` | `run --store` |\n| --- | --- | --- | --- |\n")
	for _, p := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.Name, p.from(), p.Plain, p.Store)
		plain[outcome(p.Plain)]++
		store[outcome(p.Store)]++
	}
	said := func(counts map[string]int) string {
		return fmt.Sprintf("%d use all links at the first attempt, %d use one, %d fail at first or always, and %d fail as without `run`", counts["all"], counts["one"],
			counts["fails at first"]+counts["fails"], counts["as without run"])
	}
	fmt.Fprintf(&b, "\nOf these %d programs, %s. With `--store`, %s.\n", len(rows), said(plain), said(store))
	return b.String()
}

// TestRunProgramsDoc: the table of programs in docs/RUN.md is that of programs.toml, whose expectations TestRunPrograms checks.
func TestRunProgramsDoc(t *testing.T) {
	const begin, end = "<!-- Made by \"make programdoc\" from lab/e2e/programs.toml. Do not edit. -->\n\n", "\n<!-- end of the programs -->\n"
	name := filepath.Join("..", "..", "docs", "RUN.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("docs/RUN.md lacks the marks %q and %q", begin, end)
	}
	want := before + begin + programTable(programs(t)) + end + after
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Error("docs/RUN.md is out of date: run  make programdoc")
	}
}

// programTime bounds one attempt.
const programTime = 60 * time.Second

// programSize is the size of the object: large enough that both links carry a part of it.
const programSize = 5_000_000

// programRig runs the commands of programs.toml on a machine whose stores of certificates contain the lab's authority.
type programRig struct {
	*rig
	content []byte
	pin     string // hash of the origin's key, as curl wants it
	folder  string // what tools/programs.sh has installed; "" = nothing
	mounts  string // commands that put the lab's stores in place
}

// attempt is the result of a run of a command.
type attempt struct {
	right    bool // exit code 0 and the right bytes
	code     int
	links    map[string]int64 // bytes of both directions
	said     string           // standard error and output
	lastLine string           // what `tributary run` says at its end
}

// outcome says how many links carried the bytes.
func (a attempt) outcome() string {
	if !a.right {
		return "fails"
	}
	for _, n := range a.links {
		if n < programSize/part {
			return "one"
		}
	}
	return "all"
}

// programDirectives are nginx's: the types of files, and what answers requests that no file answers.
const programDirectives = `charset_types text/html;
	types { text/html html; application/json json; application/vnd.oci.image.manifest.v1+json oci; }
	location /lfs.git/info/lfs/ { default_type application/vnd.git-lfs+json; error_page 405 =200 $uri; }
	location /svn { proxy_pass http://127.0.0.1:8083; proxy_set_header Host $host; }`

func newProgramRig(t *testing.T) *programRig {
	t.Helper()
	r := &programRig{
		rig:    newRig(t, quick(), netlab.NginxOptions{Directives: programDirectives}),
		folder: os.Getenv("TRIBUTARY_PROGRAMS"),
	}
	r.content = r.rig.content(programSize)
	r.offer("object.bin", r.content)
	r.offer("bucket/key", r.content)
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	// The system's store, Java's and that of certifi, each with one authority more: a program that works on the lab's origins
	// without Tributary does so as it does on the internet. No authority was installed by hand, as on most machines.
	stores := filepath.Join(r.lab.Dir, "stores")
	out, err := exec.Command("sh", "-ec", `mkdir -p "$1/none" && cp -a /etc/ssl/certs "$1/certs" && rm -f "$1/certs/ca-certificates.crt"
		cat /etc/ssl/certs/ca-certificates.crt "$2" > "$1/certs/ca-certificates.crt"
		cp "$2" "$1/certs/$(openssl x509 -in "$2" -noout -hash).0"
		if [ -e "$1/certs/java/cacerts" ] && command -v keytool > /dev/null; then
			keytool -importcert -noprompt -alias lab -storepass changeit -keystore "$1/certs/java/cacerts" -file "$2"
		fi
		for list in "$3"/venv/lib/python3*/site-packages/certifi/cacert.pem; do [ ! -e "$list" ] || cat "$list" "$2" > "$1/certifi.pem"; done`,
		"sh", stores, cert.CA, r.folder).CombinedOutput()
	if err != nil {
		t.Fatalf("stores: %v\n%s", err, out)
	}
	r.pin = "sha256//" + strings.TrimSpace(r.local("sh", "-c", `openssl x509 -in "$1" -noout -pubkey |
		openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64`, "sh", cert.Chain))
	r.mounts = fmt.Sprintf(`mount --bind %[1]s/certs /etc/ssl/certs
		[ ! -e /usr/local/share/ca-certificates ] || mount --bind %[1]s/none /usr/local/share/ca-certificates
		for list in %[2]s/venv/lib/python3*/site-packages/certifi/cacert.pem; do [ ! -e "$list" ] || mount --bind %[1]s/certifi.pem "$list"; done
		`, stores, r.folder)
	return r
}

// try runs a command in a new folder, with tributary and its flags before it if there are any, and with home as $HOME.
func (r *programRig) try(p runProgram, home string, tributary ...string) attempt {
	r.Helper()
	r.settle()
	before := map[string]int64{}
	for _, link := range r.lab.LinkNames() {
		_, before[link] = r.carried(link)
	}
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	dir := filepath.Dir(r.file())
	tmp := r.mkdir(dir, "tmp")
	setting := func(key, folder string) string { // where the tools of this machine's user are, since $HOME is new
		if v := os.Getenv(key); v != "" {
			return key + "=" + v
		}
		return key + "=" + filepath.Join(os.Getenv("HOME"), folder)
	}
	env := []string{
		"HOME=" + home, "TMPDIR=" + tmp, "USER=root", "TERM=dumb", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:" + os.Getenv("PATH"),
		setting("RUSTUP_HOME", ".rustup"), "URL=https://" + netlab.OriginName + "/object.bin",
		"ORIGIN=https://" + netlab.OriginName, "P=" + r.folder, "CA=" + cert.CA, "PIN=" + r.pin,
		"NODE_PATH=" + filepath.Join(r.folder, "node_modules"),
	}
	if len(tributary) == 0 && p.Direct != "" {
		env = append(env, strings.ReplaceAll(p.Direct, "$CA", cert.CA))
	}
	argv := slices.Concat([]string{"--mount", "--propagation", "private", "sh", "-ec", r.mounts + `exec "$@"`, "sh", "env", "-i"}, env, tributary,
		[]string{"bash", "-o", "pipefail", "-c", p.Run})
	ctx, cancel := context.WithTimeout(r.ctx, programTime)
	defer cancel()
	cmd := r.lab.Client(ctx, "unshare", argv...)
	cmd.Dir = dir
	cmd.Env = withoutTrust(os.Environ())
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		r.Fatalf("%s: %v", p.Name, err)
	}
	got, _ := os.ReadFile(filepath.Join(dir, "out"))
	a := attempt{code: cmd.ProcessState.ExitCode(), said: said.String(), links: map[string]int64{}}
	a.right = a.code == 0 && bytes.Equal(got, r.content)
	if ctx.Err() != nil {
		a.said += fmt.Sprintf("\n(ended after %v)", programTime)
	}
	if last := regexp.MustCompile(`(?m)^tributary: .*$`).FindAllString(a.said, -1); last != nil {
		a.lastLine = last[len(last)-1]
	}
	r.settle()
	for _, link := range r.lab.LinkNames() {
		_, after := r.carried(link)
		a.links[link] = after - before[link]
	}
	if strings.Contains(a.said, "DATA RACE") || strings.Contains(a.said, "panic: ") && strings.Contains(a.said, "tributary/internal") {
		r.Errorf("it raced or panicked: %s", a.said)
	}
	_ = os.RemoveAll(dir) // a cache of one of the programs can be large
	return a
}

// under runs a program with `tributary run` as it has never run before; a program that fails gets two more attempts.
func (r *programRig) under(p runProgram, flags ...string) (outcome, lastLine string) {
	r.Helper()
	home := filepath.Dir(r.file())
	argv := []string{r.options.Binary, "run"}
	for _, name := range r.lab.LinkNames() {
		argv = append(argv, "--link", name)
	}
	for n := range 3 {
		a := r.try(p, home, append(argv, flags...)...)
		got := a.outcome()
		if n == 0 {
			lastLine = a.lastLine
		}
		r.Logf("run %v, attempt %d: %s, exit code %d, %v, %s", flags, n+1, got, a.code, a.links, a.lastLine)
		if a.right {
			if n > 0 {
				got = "fails at first" // how many links it uses then differs between runs: several tunnels are spread
			}
			return got, lastLine
		}
		r.Logf("it said: %s", tail(a.said, 1500))
	}
	return "fails", lastLine
}

// tail returns the end of a text.
func tail(s string, n int) string {
	if len(s) > n {
		return "... " + s[len(s)-n:]
	}
	return s
}

// TestRunPrograms runs each program of programs.toml without Tributary, with `tributary run`, and with `run --store`, and
// compares how it downloads with what the row says.
func TestRunPrograms(t *testing.T) {
	if !matrix() {
		t.Skip("make matrix runs it")
	}
	r := newProgramRig(t)
	r.fixtures()
	var table strings.Builder
	for _, p := range programs(t) {
		t.Run(p.Name, func(t *testing.T) {
			r := *r
			r.rig = r.on(t)
			direct := r.try(p, filepath.Dir(r.file()))
			if !direct.right && outcome(p.Plain) != "as without run" {
				fmt.Fprintf(&table, "%-28s | skipped: it fails directly\n", p.Name)
				t.Skipf("exit code %d without Tributary: is it installed (%s)? %s", direct.code, p.from(), tail(direct.said, 1500))
			}
			if direct.right && outcome(p.Plain) == "as without run" {
				t.Error("it works without Tributary")
			}
			fmt.Fprintf(&table, "%-28s", p.Name)
			for _, c := range []struct {
				want  string
				flags []string
			}{{p.Plain, nil}, {p.Store, []string{"--store"}}} {
				got, lastLine := r.under(p, c.flags...)
				if !direct.right && got == "fails" {
					got = "as without run"
				}
				fmt.Fprintf(&table, " | %s (%s)", got, strings.TrimPrefix(lastLine, "tributary: "))
				if got != outcome(c.want) {
					t.Errorf("run %v: %s, want %s", c.flags, got, c.want)
				}
			}
			table.WriteByte('\n')
		})
	}
	t.Logf("programs under run | and under run --store:\n%s", table.String())
}

// fixtures puts what package managers want onto the origin; each package contains the object. What needs a program that is
// missing is left out, and its row is skipped.
func (r *programRig) fixtures() {
	r.Helper()
	r.offerWheel(r.content)
	r.offerNPM(r.content)
	if _, err := exec.LookPath("git"); err == nil {
		r.offerGit(r.content)
	}
	layer, config := sum(r.content), `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`
	r.offer("v2/lab/blobs/sha256:"+layer, r.content)
	r.offer("v2/lab/blobs/sha256:"+sum([]byte(config)), []byte(config))
	r.offer("v2/lab/manifests/1.oci", fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
		"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%d},
		"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%d,
			"annotations":{"org.opencontainers.image.title":"out"}}]}`, sum([]byte(config)), len(config), layer, len(r.content)))
	r.offer("v2/index.html", nil)
	r.offerPrograms()
	r.runFixtures()
	r.startSVN()
}
