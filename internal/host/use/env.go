package use

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

func errNoFile(cause string) error {
	return fmt.Errorf("the program does not read a settings file: %s", cause)
}

// environment plans variables for programs that have no other settings, in the file that the user's shell reads at
// login.
func (p *plan) environment(vars ...string) error {
	path := p.home(".profile")
	if filepath.Base(p.Getenv("SHELL")) == "zsh" {
		path = filepath.Join(cmp.Or(p.Getenv("ZDOTDIR"), p.home()), ".zshenv")
	} else if bash := p.home(".bash_profile"); filepath.Base(p.Getenv("SHELL")) == "bash" {
		if _, exists, err := p.before(bash); err != nil {
			return err
		} else if exists { // then bash does not read .profile
			path = bash
		}
	}
	lines := make([]string, len(vars))
	for i, v := range vars {
		lines[i] = "export " + v
	}
	p.note("takes effect at the next login, or in this shell after  . %s", path)
	return p.add(path, lines...)
}

// endpoint returns the gateway's address for the only server that a program downloads from, which the variable names,
// or own.
func (p *plan) endpoint(prefix, variable, own string) (string, error) {
	set := p.Getenv(variable)
	if p.own(set) {
		set = "" // an earlier run set it
	}
	upstream, err := p.onlyOne(set, own)
	if err != nil {
		return "", err
	}
	at, ok := p.through(prefix, upstream)
	if !ok {
		return "", notHTTPS(upstream)
	}
	return at, nil
}

// huggingFace sets the hub's address. Xet storage has its own protocol, which bypasses every gateway.
func huggingFace(p *plan) error {
	at, err := p.endpoint("hf", "HF_ENDPOINT", "https://huggingface.co")
	if err != nil {
		return err
	}
	p.checks = append(p.checks, at+"/")
	return p.environment("HF_ENDPOINT="+at, "HF_HUB_DISABLE_XET=1")
}

// rustup sets the servers of toolchains and of rustup itself.
func rustup(p *plan) error {
	at, err := p.endpoint("https", "RUSTUP_DIST_SERVER", "https://static.rust-lang.org")
	if err != nil {
		return err
	}
	p.checks = append(p.checks, at+"/dist/channel-rust-stable.toml.sha256")
	return p.environment("RUSTUP_DIST_SERVER="+at, "RUSTUP_UPDATE_ROOT="+at+"/rustup")
}

// brew sets the server of bottles; Homebrew asks it for everything, and the original servers for what fails.
func brew(p *plan) error {
	upstream, err := p.onlyOne("", "https://ghcr.io")
	if err != nil {
		return err
	}
	at, ok := p.through("brew", upstream)
	if !ok {
		return notHTTPS(upstream)
	}
	path := p.home(".homebrew", "brew.env")
	if dir := p.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		path = filepath.Join(dir, "homebrew", "brew.env")
	}
	text, _, err := p.before(path)
	if err != nil {
		return err
	}
	if strings.Contains(text, "HOMEBREW_ARTIFACT_DOMAIN=") {
		return fmt.Errorf("%s has another HOMEBREW_ARTIFACT_DOMAIN: remove it, or name it with --upstream", path)
	}
	p.checks = append(p.checks, strings.Replace(at, "/brew/", "/https/", 1)+"/v2/")
	return p.add(path, "HOMEBREW_ARTIFACT_DOMAIN="+at)
}
