package daemon

import (
	"encoding/json"
	"net"
	"net/http"

	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/front/gateway"
)

// gatewayControl serves requests about the gateway on the control socket.
type gatewayControl struct {
	hosts *gateway.Hosts
	at    net.Addr
}

func (g gatewayControl) show(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(control.Gateway{
		Listen: g.at.String(), Hosts: g.hosts.Recorded(r.FormValue("program")),
	}) // an error means that the client is gone
}

// record records the hosts of a program.
func (g gatewayControl) record(w http.ResponseWriter, r *http.Request) {
	var hosts []string
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&hosts); err != nil {
		http.Error(w, "the list of hosts is malformed", http.StatusBadRequest)
		return
	}
	if err := g.hosts.Record(r.Context(), r.FormValue("program"), hosts); err != nil {
		http.Error(w, "record the hosts of the gateway: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
