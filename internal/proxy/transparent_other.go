//go:build !linux

package proxy

import (
	"net"
	"time"
)

// speaksHTTP is for Linux, where connections can be redirected.
func speaksHTTP(*net.TCPConn, time.Duration) bool { return false }
