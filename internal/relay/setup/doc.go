// Package setup installs the relay on a server, and removes it, with nothing but ssh and a shell there.
package setup
