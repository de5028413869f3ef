// Command tributary is an HTTP proxy that runs one download over every network link: see tributary --help.
package main

import (
	"os"

	"github.com/tributary-http/tributary/internal/cli"
)

// version is set by the linker: see the Makefile.
var version string

func main() {
	prepare()
	os.Exit(cli.Main(os.Args[1:], version))
}
