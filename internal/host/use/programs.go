package use

import (
	"slices"
	"strings"
)

// program is a program whose settings can name the gateway.
type program struct {
	name  string
	about string // what the command changes
	make  func(*plan) error
}

// programs are all programs with a recipe. The URLs in the recipes are the programs' defaults.
var programs = []program{
	{"apt", "https sources of apt (root)", apt},
	{"brew", "Homebrew's bottles", brew},
	{"conda", "conda, mamba, micromamba: channels by name", conda},
	{"containerd", "containerd, nerdctl, k3s: images (root)", containerd},
	{"dnf", "https repositories of dnf (root)", dnf},
	{"docker", "Docker's images (root)", docker},
	{"go", "Go's modules and toolchains", golang},
	{"hf", "Hugging Face: huggingface_hub, transformers", huggingFace},
	{"nix", "Nix's binary caches", nix},
	{"pip", "pip's indexes", pip},
	{"podman", "podman, buildah, skopeo, CRI-O: images", podman},
	{"rustup", "Rust's toolchains", rustup},
}

// Programs returns the names of all programs, in order.
func Programs() (names []string) {
	for _, p := range programs {
		names = append(names, p.name)
	}
	return names
}

// About returns one line of help for each program.
func About() string {
	var b strings.Builder
	for _, p := range programs {
		b.WriteString("  " + p.name + strings.Repeat(" ", 12-len(p.name)) + p.about + "\n")
	}
	return b.String()
}

func programNamed(name string) (program, bool) {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if i < 0 {
		return program{}, false
	}
	return programs[i], true
}
