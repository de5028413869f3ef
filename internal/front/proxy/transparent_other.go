//go:build !linux

package proxy

import (
	"net"
	"time"
)

// sniff is for Linux, where connections can be redirected.
func sniff(_ *net.TCPConn, read []byte, _ time.Duration) verdict { return judge(read) }

// serverName is for Linux, too.
func serverName(*net.TCPConn, time.Duration) string { return "" }
