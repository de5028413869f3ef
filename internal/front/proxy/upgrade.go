package proxy

import (
	"bytes"
	"io"
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// upgradeOffer returns the protocol that r may switch to: "websocket", or "" for everything else. The frames of h2c
// would bypass all rules (R70).
func upgradeOffer(r *http.Request) string {
	if r.Method == http.MethodGet && r.ProtoAtLeast(1, 1) && r.ContentLength == 0 &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") &&
		httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "websocket") {
		return "websocket"
	}
	return ""
}

// switchProtocols passes on a 101 and copies both ways until the connection ends (R69-R72).
func (x *exchange) switchProtocols(a *answer, offer string) {
	origin, ok := a.Body.(io.ReadWriteCloser)
	if offer == "" || !httpguts.HeaderValuesContainsToken(a.Header["Upgrade"], offer) || !ok {
		x.refuse(badGateway("http_upgrade_failed",
			"The server switched to a protocol that was not requested. Try again."))
		return
	}
	h := a.Header
	removeHopByHop(h)
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", offer)
	head := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Write(head) // a Buffer takes everything
	head.WriteString("\r\n")
	x.tunnel(head.Bytes(), origin, a.link, nil)
}
