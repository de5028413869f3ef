package get

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tributary-http/tributary/internal/host/partial"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// store is where the rig's downloads keep their claims.
func (r *rig) store() partial.Store { return partial.Store(r.dir + ".state") }

// claim is the path of the rig's only claim.
func (r *rig) claim() string {
	r.Helper()
	all, err := filepath.Glob(filepath.Join(string(r.store()), "[0-9a-f]*"))
	if err != nil || len(all) != 1 {
		r.Fatalf("claims: %q, %v", all, err)
	}
	return all[0]
}

// claims returns what the rig's only claim says.
func (r *rig) claims() (prefix int64, fields map[string]any) {
	r.Helper()
	text, err := os.ReadFile(r.claim())
	if err != nil {
		r.Fatal(err)
	}
	line, rest, _ := strings.Cut(string(text), "\n")
	if _, err := fmt.Sscan(line, &prefix); err != nil {
		r.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(rest))
	d.UseNumber() // times have more digits than a float64
	if err := d.Decode(&fields); err != nil {
		r.Fatal(err)
	}
	return prefix, fields
}

// number returns a number in a claim.
func number(field any) int64 {
	n, _ := field.(json.Number).Int64()
	return n
}

// edit changes the rig's only claim into one that another version of Tributary might have written.
func (r *rig) edit(change func(fields map[string]any)) {
	r.Helper()
	_, fields := r.claims()
	text, err := os.ReadFile(r.claim())
	if err != nil {
		r.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	change(fields)
	rest, err := json.Marshal(fields)
	if err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(r.claim(), append([]byte(line+"\n"), rest...), 0o600); err != nil {
		r.Fatal(err)
	}
}

// own makes a .part of the rig with this content, as if a download had left it.
func (r *rig) own(name string, content []byte, o partial.Object) {
	r.Helper()
	r.write(name, content)
	f, err := os.OpenFile(r.path(name), os.O_RDWR, 0)
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	c, err := r.store().Claim(f, partial.Found{Object: o})
	if err != nil {
		r.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		r.Fatal(err)
	}
	c.Keep(int64(len(content)), true)
}

// count changes how many bytes the rig's only claim counts.
func (r *rig) count(prefix int64) {
	r.Helper()
	f, err := os.OpenFile(r.claim(), os.O_WRONLY, 0)
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%-19d", prefix); err != nil {
		r.Fatal(err)
	}
}

// objectOf describes the server's object.
func objectOf(s *origintest.Server) partial.Object {
	return partial.Object{URL: s.URL(), Place: s.URL(), Validator: `"v1"`, Mark: markOfObject(s.Object()), Size: s.Object().Size}
}

// stateOf is the path of the state of a .part.
func (r *rig) stateOf(string) string { return r.claim() }

// forget removes the state of a .part.
func (r *rig) forget(string) { r.must(os.Remove(r.claim())) }

// killed makes the claim of a .part that of a process which was killed in the middle of a write.
func (r *rig) killed(string) {
	r.edit(func(c map[string]any) { c["closed"] = false })
	text, err := os.ReadFile(r.claim())
	r.must(err, os.WriteFile(r.claim(), []byte(strings.Replace(string(text), "=", "+", 1)), 0o600))
}
