// Package config implements the user's settings: the TOML file, its defaults, and a check that reports all errors at
// once. Flags of the commands override the result of Load; every flag is named after a key, with dashes instead of
// underscores. Only rarely used keys and the [link.NAME] tables do not have a flag.
//
// A Config is a plain value. Load and Default return a new one; this package never shares or changes it later. Sizes
// are in bytes, and durations have a unit.
package config
