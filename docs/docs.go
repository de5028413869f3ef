// Package docs holds the pages that the program contains.
package docs

import _ "embed"

// Configuration is the page from which tributary.toml(5) is made.
//
//go:embed CONFIGURATION.md
var Configuration string
