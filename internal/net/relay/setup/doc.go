// Package setup installs the relay on a server and removes it; the server needs only sshd and a shell.
package setup
