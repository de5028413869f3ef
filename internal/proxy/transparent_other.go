//go:build !linux

package proxy

import (
	"net"
	"time"
)

// sniff is for Linux, where connections can be redirected.
func sniff(*net.TCPConn, time.Duration) verdict { return isOther }

// serverName is for Linux, too.
func serverName(*net.TCPConn, time.Duration) string { return "" }
