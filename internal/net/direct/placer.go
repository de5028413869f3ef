package direct

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/net/conn"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	measureEvery = 500 * time.Millisecond // while something runs
	// idleEvery is the maximum time between two measurements, reached by doubling while nothing runs. It bounds the
	// time until the Placer notices that a program uses a connection again whose link has died.
	idleEvery = 4 * time.Second
	// maxProgram is the maximum length, in bytes, of a program's name, which the program itself chooses.
	maxProgram = 128
)

// Placer chooses the links of tunnels and of requests that pass through, and counts the bytes that they carry. Counting
// requires Run. Safe for concurrent use.
type Placer struct {
	// Busy, if not nil, is called when the number of running tunnels and requests changes, or the number of those among
	// them whose program could use further links. It must neither block nor call the Placer.
	Busy func(all, spread int)
	// Remembered, if not nil, returns the earlier goodput of the network behind a link, in bytes per second, 0 if
	// unknown.
	Remembered func(l link.Link) float64
	// Overdue, if not nil, gets the connections over a link whose other end owes an answer and is silent, then nil when
	// there are none left. It must neither block nor call the Placer.
	Overdue func(name string, of []engine.Overdue)
	// Relay, if not nil, returns how many bytes the lanes to a relay have carried, by name of the link, and the number
	// of tunnels through it. It must not call the Placer.
	Relay func() (carried map[string]int64, tunnels int)

	wake chan struct{}

	mu      sync.Mutex
	table   *spread.Table
	open    map[spread.ID]*placed
	busy    [2]int                      // as last passed to Busy
	late    map[string][]engine.Overdue // as last passed to Overdue, by name of the link
	alert   bool                        // a connection needs another look soon
	watched time.Time                   // when the connections were last looked at
	tunnels int                         // through a relay, as last measured
}

// NewPlacer returns a Placer without connections.
func NewPlacer(p spread.Policy) *Placer {
	return &Placer{wake: make(chan struct{}, 1), table: spread.New(p), open: map[spread.ID]*placed{}}
}

// flowTo returns the flow of a connection to addr for a program with this User-Agent.
func flowTo(ctx context.Context, addr, agent string) spread.Flow {
	o := engine.OptionsOf(ctx)
	f := o.Flow
	f.Unmetered = o.Request().Unmetered
	if f.Program == "" && !f.Redirected {
		f.Program = agent
	}
	f.Program = strings.Clone(f.Program[:min(len(f.Program), maxProgram)])
	if f.Host == "" {
		f.Host = link.HostOf(addr)
	}
	if f.Domain = f.Host; net.ParseIP(f.Host) == nil {
		if d, err := publicsuffix.EffectiveTLDPlusOne(f.Host); err == nil {
			f.Domain = d
		}
	}
	return f
}

// placed is a tunnel or a request under way. A nil *placed counts nothing.
type placed struct {
	placer *Placer
	id     spread.ID
	addr   string        // "host:port"
	wait   time.Duration // for the first link, until the next one joins the race
	moved  atomic.Int64  // bytes of a request, both directions
	once   sync.Once

	// Guarded by the placer's mu.
	link     string     // link that carries it, "" until there is a connection
	conn     *conn.Conn // connection that carries it, nil if there is none yet or it does not use TCP
	before   int64      // bytes that conn had carried when it took over
	isTunnel bool       // only the kernel counts its bytes
	peer     deadPeer
	relax    func() // from link.Press, nil if it was not called
}

// place registers a connection and returns the links in the order in which it may start on them. links is the default
// order. The caller must call end.
func (p *Placer) place(f spread.Flow, addr string, links []link.Link,
	lost func(name string) bool,
) (*placed, []link.Link) {
	if p == nil {
		return nil, links
	}
	all := make([]spread.Link, len(links))
	for i, l := range links {
		all[i] = spread.Link{Name: l.Name, Metered: l.Terms.Last(), Lost: lost(l.Name)}
		if p.Remembered != nil {
			all[i].Remembered = p.Remembered(l)
		}
	}
	n, now := &placed{placer: p, addr: addr}, time.Now()
	p.mu.Lock()
	p.measure(now)
	d := p.table.Place(now, f, all)
	n.id, n.wait = d.ID, raceDelay
	switch {
	case d.Settled && d.Works:
		n.wait = worksDelay
	case d.Settled:
		n.wait = settledDelay
	}
	p.open[d.ID] = n
	p.mu.Unlock()
	p.Wake()
	order := make([]link.Link, len(links))
	for i, k := range d.Order {
		order[i] = links[k]
	}
	return n, order
}

// Wake makes Run measure: something may have begun.
func (p *Placer) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// headStart returns how long the first link of a race has to itself.
func (n *placed) headStart() time.Duration {
	if n == nil {
		return raceDelay
	}
	return n.wait
}

// Connected records the round-trip time of a new connection over a link, 0 if it is unknown.
func (p *Placer) Connected(name string, rtt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.Connected(time.Now(), name, rtt)
}

// Goodput records the goodput, in bytes per second, of a link that divided downloads keep busy.
func (p *Placer) Goodput(name string, perSecond float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.Goodput(time.Now(), name, perSecond)
}

// Loads measures, and returns the undivided load of each link and the number of running connections and requests.
func (p *Placer) Loads() (loads map[string]spread.Load, running int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measure(time.Now())
	return p.table.Loads(), p.busy[0]
}

// Run measures until ctx ends.
func (p *Placer) Run(ctx context.Context) {
	timer := time.NewTimer(idleEvery)
	defer timer.Stop()
	for wait := measureEvery; ; wait = min(2*wait, idleEvery) {
		p.mu.Lock()
		p.measure(time.Now())
		none := len(p.open)+len(p.late)+p.tunnels == 0
		if p.busy[0] > 0 || p.alert {
			wait = measureEvery
		}
		p.mu.Unlock()
		timer.Reset(wait)
		due := timer.C
		if none {
			due = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
			continue
		case <-p.wake: // there is a new connection
			wait = measureEvery / 2
		}
		timer.Reset(measureEvery) // not sooner, however many start
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// measure records how much each connection has carried. The lock is held.
func (p *Placer) measure(now time.Time) {
	var lanes map[string]int64
	if p.Relay != nil {
		lanes, p.tunnels = p.Relay()
	}
	p.table.Measure(now, func(id spread.ID) int64 { return p.open[id].carried() }, lanes)
	p.tell()
	if now.Sub(p.watched) >= measureEvery {
		p.watched = now
		p.watch(now)
	}
}

// watch looks for connections whose other end has fallen silent. The lock is held.
func (p *Placer) watch(now time.Time) {
	late := map[string][]engine.Overdue{}
	p.alert = false
	for _, n := range p.open {
		if n.conn == nil {
			continue
		}
		f := n.look(now)
		p.alert = p.alert || f.watch
		if to, ok := remoteOf(n.conn); f.overdue && ok {
			late[n.link] = append(late[n.link], engine.Overdue{Addr: n.addr, To: to})
		}
	}
	if p.Overdue == nil {
		return
	}
	for name := range p.late {
		if late[name] == nil {
			p.Overdue(name, nil)
		}
	}
	for name, of := range late {
		p.Overdue(name, of)
	}
	p.late = late
}

// look checks the connection that carries n. The placer's lock is held.
func (n *placed) look(now time.Time) findings {
	f := n.peer.look(now, link.VitalsOf(n.conn))
	switch {
	case f.ask:
		n.relax = link.Press(n.conn)
	case f.relax && n.relax != nil:
		n.relax()
		n.relax = nil
	}
	return f
}

// remoteOf returns the address of the other end of a connection.
func remoteOf(c *conn.Conn) (netip.Addr, bool) {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return tcp.AddrPort().Addr().Unmap(), true
}

// tell calls Busy if the number of running connections changed. The lock is held.
func (p *Placer) tell() {
	all, further := p.table.Busy()
	if now := [2]int{all, further}; now != p.busy {
		p.busy = now
		if p.Busy != nil {
			p.Busy(all, further)
		}
	}
}

// carried returns how many bytes n has carried. Bytes that wait in the kernel to be sent do not count: buffers fill
// much faster than links carry. The placer's lock is held.
func (n *placed) carried() int64 {
	moved, kernel := n.moved.Load(), int64(0)
	if n.conn != nil {
		kernel = link.VitalsOf(n.conn).Carried - n.before
	}
	switch {
	case n.isTunnel:
		return kernel
	case kernel <= 0: // closed already, or not a connection that the kernel knows
		return moved
	}
	return min(moved, kernel)
}

// over records the connection that carries n, and the link of that connection.
func (n *placed) over(name string, c *conn.Conn) {
	if n == nil {
		return
	}
	n.placer.mu.Lock()
	defer n.placer.mu.Unlock()
	n.link, n.peer = name, deadPeer{}
	if n.conn = nil; c != nil && c.HasSocket() {
		n.conn = c
		n.before = link.VitalsOf(n.conn).Carried
	}
	n.placer.table.Moved(time.Now(), n.id, name)
}

// end records that n has ended. The connection must still be open.
func (n *placed) end() {
	if n == nil {
		return
	}
	n.once.Do(func() {
		n.placer.mu.Lock()
		defer n.placer.mu.Unlock()
		n.placer.table.End(time.Now(), n.id, n.carried())
		if n.relax != nil { // the connection may be used again
			n.relax()
		}
		delete(n.placer.open, n.id)
		n.placer.tell()
	})
}

// tunnel makes n count a tunnel's connection over a link until it closes. Copies through TCP can still be spliced: the
// kernel counts.
func (n *placed) tunnel(name string, c *conn.Conn) {
	if n == nil {
		return
	}
	n.over(name, c)
	n.placer.mu.Lock()
	n.isTunnel = true
	n.placer.mu.Unlock()
	c.BeforeClose(n.end)
}

// relayed returns the connection of a tunnel whose bytes the kernel does not count.
func (n *placed) relayed(nc net.Conn) net.Conn {
	c := conn.Of(nc)
	c.Through(conn.Counter(func(read, written int) { n.moved.Add(int64(read + written)) }))
	c.BeforeClose(n.end)
	return c
}

// request returns the content of a request, and counts its bytes.
func (n *placed) request(body io.ReadCloser) io.ReadCloser {
	if n == nil || body == nil || body == http.NoBody {
		return body
	}
	return &placedRequest{body, n}
}

// placedRequest is the content of a request. Closing it is not the end: the answer follows.
type placedRequest struct {
	io.ReadCloser
	as *placed
}

// Read implements io.Reader.
func (b *placedRequest) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.as.moved.Add(int64(n))
	return n, err
}

// response ends n when the content of the answer ends.
func (n *placed) response(resp *http.Response) {
	if n == nil {
		return
	}
	b := placedBody{resp.Body, n}
	switch rwc, ok := resp.Body.(io.ReadWriteCloser); {
	case resp.Body == http.NoBody:
		n.end()
	case ok && resp.StatusCode == http.StatusSwitchingProtocols:
		resp.Body = &placedUpgrade{b, rwc}
	default:
		resp.Body = &b
	}
}

// placedBody is the content of an answer.
type placedBody struct {
	io.ReadCloser
	as *placed
}

// Read implements io.Reader.
func (b *placedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.as.moved.Add(int64(n))
	if err != nil {
		b.as.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *placedBody) Close() error {
	b.as.end()
	return b.ReadCloser.Close()
}

// placedUpgrade is a connection whose protocol has changed.
type placedUpgrade struct {
	placedBody
	rwc io.ReadWriteCloser
}

// Read implements io.Reader. The end of one direction does not end the connection.
func (u *placedUpgrade) Read(p []byte) (int, error) {
	n, err := u.rwc.Read(p)
	u.as.moved.Add(int64(n))
	return n, err
}

// Write implements io.Writer.
func (u *placedUpgrade) Write(p []byte) (int, error) {
	n, err := u.rwc.Write(p)
	u.as.moved.Add(int64(n))
	return n, err
}

// CloseWrite ends writing.
func (u *placedUpgrade) CloseWrite() error {
	if c, ok := u.rwc.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}
