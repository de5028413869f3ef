// Package config holds the user's settings: the TOML file, its defaults, and one check that names everything wrong at once.
// Flags of the commands are laid over the result of Load; every flag has the name of a key here, with dashes for underscores.
// The only keys without a flag are rarely touched ones and the [link.NAME] tables.
//
// A Config is a plain value. Load and Default return a fresh one; nothing in this package is shared or changed later.
// Sizes are bytes, durations carry their unit.
package config
