package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-http/tributary/lab/netlab"
)

// contender is a way to download an object over the lab's links.
type contender struct {
	name  string
	mptcp bool // needs the origin that accepts MPTCP
	// argv is the command; {url}, {out}, {ca}, {binary} and {links} are replaced
	argv []string
	// own reports whether argv runs the measured tributary
	own bool
	// observed reports whether the body goes to standard output, where it is observed as it arrives; otherwise it goes
	// to {out}
	observed bool
	// ownTime reports whether the command's standard error ends with the seconds that its download took
	ownTime bool
	// plain marks one connection of one client over one link, the measure of the necessary cost of a download
	plain bool
	// proxy, if any, is the proxy that argv downloads through
	proxy *proxy
}

// proxy is a proxy that is started before a download and ended after it.
type proxy struct {
	scheduler string // of tributary, "" = its default
	config    string // of tributary, TOML
	again     bool   // another object is downloaded first and not measured
	relay     bool   // relayCommand instead of tributary
	splice    bool   // --splice of relayCommand
	lanes     bool   // tributary with its own relay at the other end
}

const (
	mptcpPort    = 8081
	mptcpTLSPort = 8444
)

const contenderHelp = "want tributary:SCHEDULER, again:SCHEDULER, frugal, lanes, connect:aria2-8, connect:queue-16, each of these three also with :again, " +
	"get, run, relay, splice, single:LINK, aria2-2, aria2-8, aria2-16, mptcp or NAME=CMD"

// curl downloads to unbuffered standard output, and ends by printing its own time.
func curl(args ...string) []string {
	return append([]string{
		"curl", "-sS", "--fail", "--no-buffer", "-w", "%{stderr}\n%{time_total}", "--cacert", "{ca}",
	}, args...)
}

// aria2 downloads over n connections.
func aria2(n string, args ...string) []string {
	return append([]string{
		"aria2c", "--no-conf", "--quiet", "--disable-ipv6=true", "--async-dns=false", "--file-allocation=none",
		"--allow-overwrite=true", "--ca-certificate={ca}", "--split=" + n, "--max-connection-per-server=" + n,
		"--min-split-size=1M", "--dir=/", "--out={out}", "{url}",
	}, args...)
}

// parseContenders parses the requested contenders: single:* is one for each link, single:best the fastest of them.
func parseContenders(o benchOptions, sc netlab.Scenario, size netlab.Bytes) ([]contender, error) {
	var texts []string
	for _, text := range o.contenders {
		switch text {
		case "single:*":
			for _, l := range sc.Links {
				texts = append(texts, "single:"+l.Name)
			}
		case "single:best":
			texts = append(texts, "single:"+bestLink(sc, size))
		default:
			texts = append(texts, text)
		}
	}
	var all []contender
	for _, text := range texts {
		c, err := parseContender(text)
		if text == "frugal" {
			c, err = frugal(sc)
		}
		if err != nil {
			return nil, err
		}
		if c.proxy != nil && !c.proxy.relay || c.own {
			if _, err := os.Stat(o.binary); err != nil {
				return nil, fmt.Errorf("contender %s: %w: make build, or name it with --binary", text, err)
			}
		} else if _, err := exec.LookPath(c.argv[0]); err != nil {
			return nil, fmt.Errorf("contender %s: %w: install its Debian package", text, err)
		}
		if o.upload {
			if !c.ownTime {
				return nil, fmt.Errorf("contender %s: only curl uploads", text)
			}
			c.argv = append(c.argv, "-T", "{file}")
		}
		all = append(all, c)
	}
	return all, nil
}

// bestLink returns the link that would carry the object alone in the shortest time, judging by its capacity.
func bestLink(sc netlab.Scenario, size netlab.Bytes) string {
	alone := func(l netlab.LinkSpec) float64 {
		took, err := netlab.PhysicalBound(netlab.Scenario{Links: []netlab.LinkSpec{l}, Events: sc.Events}, size)
		if err != nil {
			return 1e9 // it goes dark permanently
		}
		return took.Seconds()
	}
	return slices.MinFunc(sc.Links, func(a, b netlab.LinkSpec) int { return cmp.Compare(alone(a), alone(b)) }).Name
}

func parseContender(text string) (contender, error) {
	bad := func(cause string) (contender, error) {
		return contender{}, fmt.Errorf("contender %q: %s", text, cause)
	}
	kind, arg, _ := strings.Cut(text, ":")
	first, again := strings.CutSuffix(text, ":again")
	viaProxy := func(p proxy) contender {
		return contender{
			name:     text,
			proxy:    &p,
			argv:     curl("-x", "http://"+netlab.ProxyAddr, "{url}"),
			observed: true,
			ownTime:  true,
		}
	}
	switch {
	case (kind == "tributary" || kind == "again") && arg != "":
		name, settings, _ := strings.Cut(arg, "?")
		if name == "default" {
			name = ""
		}
		config, err := settingsTOML(settings)
		if err != nil {
			return bad(err.Error())
		}
		return viaProxy(proxy{scheduler: name, config: config, again: kind == "again"}), nil
	case first == "lanes":
		c := viaProxy(proxy{lanes: true, again: again})
		c.argv = curl("-x", "http://"+netlab.ProxyAddr, "--connect-to", "::"+lanesOrigin+":", "{url}")
		return c, nil
	case text == "relay" || text == "splice":
		return viaProxy(proxy{relay: true, splice: text == "splice"}), nil
	case first == "connect:aria2-8":
		return contender{
			name: text, proxy: &proxy{again: again}, argv: aria2("8", "--all-proxy=http://"+netlab.ProxyAddr),
		}, nil
	case first == "connect:queue-16":
		self, err := os.Executable()
		if err != nil {
			return bad(err.Error())
		}
		return contender{name: text, proxy: &proxy{again: again}, argv: []string{
			self, "queue", "--streams=16", "--proxy=http://" + netlab.ProxyAddr, "--cacert={ca}", "--out={out}",
			"{url}",
		}}, nil
	case text == "get":
		return contender{name: text, own: true, observed: true, argv: []string{
			"{binary}", "get", "{url}", "-q", "-o", "-", "--cacert", "{ca}", "--link", "{links}",
		}}, nil
	case text == "run":
		return contender{name: text, own: true, observed: true, argv: []string{
			"{binary}", "run", "-q", "--link", "{links}", "curl", "-sS", "--fail", "--no-buffer", "{url}",
		}}, nil
	case kind == "single" && arg != "" && !strings.Contains(arg, "="):
		return contender{
			name:     text,
			argv:     curl("--interface", arg, "{url}"),
			observed: true,
			ownTime:  true,
			plain:    true,
		}, nil
	case text == "aria2-2" || text == "aria2-8" || text == "aria2-16":
		return contender{name: text, argv: aria2(strings.TrimPrefix(text, "aria2-"), "--multiple-interface={links}")},
			nil
	case text == "mptcp":
		return contender{
			name:     text,
			mptcp:    true,
			argv:     append([]string{"mptcpize", "run"}, curl("{url}")...),
			observed: true,
			ownTime:  true,
		}, nil
	}
	if name, cmd, ok := strings.Cut(text, "="); ok && name != "" && strings.TrimSpace(cmd) != "" {
		return contender{name: name, argv: []string{"sh", "-c", cmd}}, nil
	}
	return bad(contenderHelp)
}

// settingsTOML turns "key=value&key=value" into a configuration file's lines; a value is a number, true, false or text.
func settingsTOML(settings string) (string, error) {
	var toml strings.Builder
	for setting := range strings.SplitSeq(settings, "&") {
		if setting == "" {
			continue
		}
		key, value, ok := strings.Cut(setting, "=")
		if !ok || key == "" || value == "" {
			return "", fmt.Errorf("setting %q: want KEY=VALUE, as in tributary:alg3?transfer_window=4MiB", setting)
		}
		if _, err := strconv.ParseFloat(value, 64); err != nil && value != "true" && value != "false" {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&toml, "%s = %s\n", key, value)
	}
	return toml.String(), nil
}
