package setup

import (
	"debug/elf"
	"fmt"
	"strings"
)

// machines maps the machine names of uname -m to Go's names.
var machines = map[string]string{
	"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv6l": "arm", "armv7l": "arm",
	"armv8l": "arm", "i386": "386", "i686": "386",
	"riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x", "loongarch64": "loong64",
}

// binaries maps the machine that an executable is for to Go's name.
var binaries = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_ARM: "arm", elf.EM_386: "386", elf.EM_RISCV: "riscv64",
	elf.EM_PPC64: "ppc64le",
	elf.EM_S390:  "s390x", elf.EM_LOONGARCH: "loong64",
}

// fits returns why a program would not run on a server with this output of uname -s -m; nil = it would.
func fits(program, uname string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s is not a program for Linux: %w", program, err)
	}
	defer f.Close()
	system, machine, _ := strings.Cut(strings.TrimSpace(uname), " ")
	if system != "Linux" {
		return fmt.Errorf("the server runs %s, and the relay needs Linux", system)
	}
	want, known := machines[machine]
	if have := binaries[f.Machine]; !known || have != want {
		if !known {
			want = machine
		}
		return fmt.Errorf("the server is a %s and this program is for %s: build one for it, "+
			"CGO_ENABLED=0 GOARCH=%s go build -o tributary-%[3]s ./cmd/tributary, and name it: --binary tributary-%[3]s",
			machine, f.Machine, want)
	}
	return nil
}
