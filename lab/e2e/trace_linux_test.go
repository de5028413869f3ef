package e2e

import (
	"encoding/json"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// The bytes that --trace writes for a link are those that the link carried, minus packet headers and retransmissions.
func TestGetTrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(20_000_000)
	before := map[string]int64{}
	for _, name := range r.lab.LinkNames() {
		_, before[name] = r.carried(name)
	}
	file, traced := r.file(), r.file()
	r.getting("-o", file, "--trace", traced, r.nginx.NamedSecureURL(o)).ended(0)
	r.isObject(r.read(file), o)
	r.settle()
	var j struct {
		StepMS float64 `json:"step_ms"`
		Links  []struct {
			Name string
			Down []int64 `json:"down_bytes"`
			Up   []int64 `json:"up_bytes"`
		}
	}
	if err := json.Unmarshal(r.read(traced), &j); err != nil || j.StepMS != 100 || len(j.Links) != 2 {
		t.Fatalf("%+v, %v", j, err)
	}
	var all int64
	for _, l := range j.Links {
		var down, up int64
		for _, n := range l.Down {
			down += n
		}
		for _, n := range l.Up {
			up += n
		}
		all += down
		_, carried := r.carried(l.Name)
		carried -= before[l.Name]
		t.Logf("%s: %d bytes down, %d up in %d steps; the link carried %d", l.Name, down, up, len(l.Down), carried)
		// 66 of 1514 bytes are headers, every other packet is acknowledged, and a full queue causes some packets to be
		// sent twice
		if sum := down + up; up == 0 || sum > carried || float64(carried) > 1.25*float64(sum)+100e3 {
			t.Errorf("%s: %d bytes down, %d up; the link carried %d", l.Name, down, up, carried)
		}
	}
	if all < int64(o.Size) {
		t.Errorf("%d bytes of an object of %d", all, o.Size)
	}
}
