package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// shims gives options to programs that have no variable for what these set: a folder that comes first in PATH has a
// script of the same name for each, which starts the program with the options and those of the user behind them. They
// get the certificate only if programs get it that read SSL_CERT_FILE, and if the proxy verifies with no more than the
// system's authorities, which these trust.
func (e *environment) shims(proxy string, usual, builtIn certificates) {
	bundle := e.get(certFile)
	if !strings.HasPrefix(bundle, e.folder.Path) || !e.roots.within(usual) {
		return
	}
	if len(Limits("aria2", e.get, systemRoot)) == 0 {
		e.shim("aria2c", "--ca-certificate="+bundle)
	}
	if len(Limits("links", e.get, systemRoot)) == 0 { // which also finds proxies of the user
		address := strings.TrimPrefix(proxy, "http://")
		e.shim("links", "-http-proxy", address, "-https-proxy", address, "-no-proxy-domains",
			"localhost,127.0.0.1,[::1]")
	}
	if len(Limits("dnf", e.get, systemRoot)) == 0 {
		for _, name := range []string{"dnf", "dnf5", "microdnf", "yum"} {
			e.shim(name, "--setopt=sslcacert="+bundle)
		}
	}
	if len(Limits("lftp", e.get, systemRoot)) == 0 {
		e.script("lftp", fmt.Sprintf(lftp, quoted("set ssl:ca-file \""+bundle+"\";")))
	}
	if path := e.find("yt-dlp"); e.roots.within(builtIn) && ignoresCertifi(path) {
		e.shim("yt-dlp", "--compat-options", "no-certifi")
	}
}

// lftp is the script for lftp, which takes settings as commands: %s is put before those of the user. It executes the
// commands of a file (-f) without any before them.
const lftp = `trust=%s before= given=
for arg; do
	shift
	case $before in -c | -e) arg="$trust $arg" ;; esac
	case $arg in -c | -e | -f | -h | -v | --*) given=yes ;; esac
	before=$arg
	set -- "$@" "$arg"
done
[ "$given" ] || set -- -e "$trust" "$@"
`

// ignoresCertifi reports whether the yt-dlp at path has the option no-certifi.
func ignoresCertifi(path string) bool {
	library := filepath.Join(filepath.Dir(path), "../lib/python3*/*-packages/yt_dlp/options.py")
	all, _ := filepath.Glob(library) // fails only for a bad pattern
	return contain(all, "no-certifi")
}

// shim makes a program of PATH start with options, unless the folder's file system forbids programs.
func (e *environment) shim(name string, options ...string) {
	e.script(name, "", options...)
}

// script is shim with commands that run before the program starts.
func (e *environment) script(name, first string, options ...string) {
	path := e.find(name)
	if path == "" {
		return
	}
	line := "exec " + quoted(path)
	for _, o := range options {
		line += " " + quoted(o)
	}
	dir := filepath.Join(e.folder.Path, "bin")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		e.err = errors.Join(e.err, err)
		return
	}
	made, err := e.folder.write(filepath.Join("bin", name), fmt.Appendf(nil, "#!/bin/sh\n%s%s \"$@\"\n", first, line))
	if err = errors.Join(err, os.Chmod(made, 0o700)); err != nil {
		e.err = errors.Join(e.err, err)
		return
	}
	if folders := e.get("PATH"); unix.Access(made, unix.X_OK) == nil && !strings.HasPrefix(folders, dir+":") {
		e.set("PATH", dir+":"+folders)
	}
}

// find returns the path of a program in PATH, "" if there is none.
func (e *environment) find(name string) string {
	for _, dir := range filepath.SplitList(e.get("PATH")) {
		path := filepath.Join(dir, name)
		if is, err := os.Stat(path); filepath.IsAbs(path) && err == nil && is.Mode().IsRegular() &&
			unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	return ""
}

// quoted quotes a word for the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
