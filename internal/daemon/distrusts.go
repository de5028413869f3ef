package daemon

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/front/intercept"
)

// configured are programs with GnuTLS that run gives the certificate by their own settings, that read a variable
// themselves, or that verify nobody unless they are told to, as those of FFmpeg.
var configured = []string{
	"wget", "wget2", "git-remote-http", "git-http-fetch", "git-http-push", "http", "lynx", "elinks",
	"ffmpeg", "ffprobe", "ffplay", "mpv",
}

// certified are programs that verify servers with the file of the Python package certifi, whatever variables say.
var certified = []string{"yt-dlp"}

// filed are parts of the paths of libraries that verify servers with a file of the system, whatever variables say: the
// wheel of pycurl, libzypp, and that of pacman.
var filed = []string{"/pycurl.libs/", "/libzypp.so", "/libalpm.so"}

// told are parts of the paths of libraries that tell GnuTLS which file to use, by variables that run sets: those of
// GDAL and Nix.
var told = []string{"/libgdal.so", "/libnixstore.so"}

// browsers are parts of the paths of files of Firefox and Chromium, and of what is built on them, such as Thunderbird
// and Electron: they have lists of their own.
var browsers = []string{"/libxul.so", "/icudtl.dat"}

// pinning is how the option of curl and wget begins that names the key which the server must have.
const pinning = "\x00--pinnedpubkey"

// distrusts returns why a program of a command is known not to trust its authority, "" if it may trust it.
func (d *Daemon) distrusts(program string, limitsRecords bool) intercept.Reason {
	path, script, _ := strings.Cut(program, " ")
	if slices.Contains(certified, filepath.Base(script)) && d.hasList(program, script) {
		return intercept.OwnList
	}
	arguments := d.programs.Read(program, "cmdline")
	named := d.private.Folder != "" && bytes.Contains(arguments, []byte(d.private.Folder))
	return distrustOf(path, d.programs.Read(program, "maps"), arguments, limitsRecords, named || d.private.Store)
}

// distrustOf is distrusts for a program by its path, the files in its memory, and its arguments. given says that the
// authority is in the system's store, or that the program's arguments name it.
func distrustOf(path string, files, arguments []byte, limitsRecords, given bool) intercept.Reason {
	loaded := func(part string) bool { return bytes.Contains(files, []byte(part)) }
	switch {
	case slices.ContainsFunc(browsers, loaded):
		return intercept.Browser
	case bytes.Contains(arguments, []byte(pinning)):
		return intercept.OwnKey
	case given, slices.Contains(configured, filepath.Base(path)), slices.ContainsFunc(told, loaded):
	// GnuTLS trusts the system's store and reads no variable. If a program has OpenSSL, too, its first message shows
	// which one it uses.
	case loaded("/libgnutls") && (limitsRecords || !loaded("/libssl")):
		return intercept.OwnStore
	case slices.ContainsFunc(filed, loaded):
		return intercept.OwnFile
	}
	return ""
}

// hasList reports whether a program of certified has certifi, with a list that lacks the authority.
func (d *Daemon) hasList(program, script string) bool {
	if bytes.Contains(d.programs.Read(program, "cmdline"), []byte("no-certifi")) {
		return false
	}
	installed, _ := filepath.Glob(filepath.Join(filepath.Dir(script),
		"../lib/python3*/site-packages/certifi/cacert.pem"))
	if len(installed) > 0 || d.private.Store {
		return len(installed) > 0
	}
	packaged, _ := filepath.Glob("/usr/lib/python3*/*-packages/certifi/core.py") // its list is the system's file
	return len(packaged) > 0
}
