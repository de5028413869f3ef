package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

const voipPort = 8092

func voipCommand() *cobra.Command {
	v := voip{options: benchOptions{timeout: time.Minute}}
	cmd := &cobra.Command{
		Use:   "voip SCENARIO",
		Short: "Measure delay, jitter, order and loss of a call over one link, over links in turn, and through the relay",
		Long: `Sends packets like those of a call from the client to the origin: by UDP over each link alone and over a device whose packets
take the links in turn, and by TCP through the relay, which sends each packet over the lane on which it arrives first (Nikravesh
2018 section 5.3.3). With --every 1s --bytes 1000, the packets are like messages. Jitter is defined as in RFC 3550 section 6.4.1.`,
		Example: "  tributary-lab voip far\n  tributary-lab voip far --every 1s --bytes 1000 --seconds 30",
		Args:    cobra.ExactArgs(1),
		RunE: over(func(cmd *cobra.Command, sc netlab.Scenario) error {
			if v.size < voipHead || v.size > 1200 {
				return fmt.Errorf("--bytes %d: want %d to 1200", v.size, voipHead)
			}
			sc.Events = nil
			return v.run(cmd.Context(), sc, cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	f.IntVar(&v.size, "bytes", 100, "in a packet")
	f.DurationVar(&v.every, "every", 10*time.Millisecond, "between packets")
	f.IntVar(&v.seconds, "seconds", 10, "length of the call")
	binaryFlag(f, &v.options.binary)
	return cmd
}

// voipHead is the head of a packet: its number, and when it was sent, in ns since the call began.
const voipHead = 16

// voip measures calls.
type voip struct {
	size, seconds int
	every         time.Duration
	options       benchOptions
}

func (v *voip) run(ctx context.Context, sc netlab.Scenario, w io.Writer) (err error) {
	l, err := netlab.New(ctx, sc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	fmt.Fprintf(w, "%-16s %10s %10s %10s %14s %8s\n", "way", "median", "p99", "jitter", "out of order", "lost")
	for _, link := range l.Links() {
		err := v.byUDP(ctx, l, w, "only "+link.Name, netlab.OriginAddr.String(),
			&net.UDPAddr{IP: link.Addr().AsSlice()})
		if err != nil {
			return err
		}
	}
	equal := make([]int, len(l.Links()))
	for i := range equal {
		equal[i] = 1
	}
	s, err := l.StartStripe(ctx, equal)
	if err != nil {
		return err
	}
	err = v.byUDP(ctx, l, w, "in turn", s.Server().String(), nil)
	s.Close()
	if err != nil {
		return err
	}
	return v.byRelay(ctx, l, w)
}

// byUDP makes a call over the link that from belongs to; nil = over the link that the route selects.
func (v *voip) byUDP(ctx context.Context, l *netlab.Lab, w io.Writer, name, to string, from *net.UDPAddr) error {
	addr := fmt.Sprintf("%s:%d", to, voipPort)
	var server net.PacketConn
	var client net.Conn
	if err := l.InServer(func() (err error) { server, err = net.ListenPacket("udp", addr); return err }); err != nil {
		return err
	}
	defer server.Close()
	err := l.InClient(func() (err error) {
		d := net.Dialer{}
		if from != nil {
			d.LocalAddr = from
		}
		client, err = d.DialContext(ctx, "udp", addr)
		return err
	})
	if err != nil {
		return err
	}
	defer client.Close()
	return v.call(ctx, w, name, client, func(b []byte) error {
		_, _, err := server.ReadFrom(b)
		return err
	}, server.SetReadDeadline)
}

// byRelay makes a call through the relay.
func (v *voip) byRelay(ctx context.Context, l *netlab.Lab, w io.Writer) (err error) {
	b, err := newBed(ctx, l, 1<<20, v.options)
	if err != nil {
		return err
	}
	if b.lanes, err = b.startLanes(ctx); err != nil {
		return err
	}
	defer b.lanes.stop()
	_, end, err := b.startProxy(ctx, proxy{lanes: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	to := fmt.Sprintf("%s:%d", lanesOrigin, voipPort)
	var ln net.Listener
	if err := l.InServer(func() (err error) { ln, err = net.Listen("tcp", to); return err }); err != nil {
		return err
	}
	defer ln.Close()
	client, err := b.throughRelay(ctx, to)
	if err != nil {
		return err
	}
	defer client.Close()
	server, err := ln.Accept()
	if err != nil {
		return err
	}
	defer server.Close()
	return v.call(ctx, w, "relay", client, func(b []byte) error {
		_, err := io.ReadFull(server, b)
		return err
	}, server.SetReadDeadline)
}

// call sends the packets, receives them, and prints the result.
func (v *voip) call(ctx context.Context, w io.Writer, name string, client net.Conn, receive func([]byte) error,
	until func(time.Time) error,
) error {
	n := int(time.Duration(v.seconds) * time.Second / v.every)
	began := time.Now()
	sent := make(chan error, 1)
	go func() {
		tick := time.NewTicker(v.every)
		defer tick.Stop()
		b := make([]byte, v.size)
		for i := range n {
			select {
			case <-ctx.Done():
				sent <- ctx.Err()
				return
			case <-tick.C:
			}
			binary.BigEndian.PutUint64(b, uint64(i))
			binary.BigEndian.PutUint64(b[8:], uint64(time.Since(began)))
			if _, err := client.Write(b); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
		_ = until(time.Now().Add(2 * time.Second)) // packets that have not arrived by then are lost
	}()
	var c call
	b := make([]byte, v.size)
	for c.received < n {
		if err := receive(b); err != nil {
			break
		}
		c.packet(int(binary.BigEndian.Uint64(b)), time.Since(began)-time.Duration(binary.BigEndian.Uint64(b[8:])))
	}
	if err := <-sent; err != nil {
		return err
	}
	if c.received == 0 {
		return fmt.Errorf("%s: nothing came", name)
	}
	slices.Sort(c.delays)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	fmt.Fprintf(w, "%-16s %7.1f ms %7.1f ms %7.1f ms %12.1f %% %6.1f %%\n", name, ms(c.delays[len(c.delays)/2]),
		ms(c.delays[len(c.delays)*99/100]),
		c.jitter, 100*float64(c.late)/float64(c.received), 100*float64(n-c.received)/float64(n))
	return nil
}

// call is the result of a call.
type call struct {
	received, late int // packets; late ones arrived after a later one
	highest        int
	last           time.Duration
	jitter         float64 // ms
	delays         []time.Duration
}

// packet records a received packet and its delay.
func (c *call) packet(number int, delay time.Duration) {
	if c.received > 0 {
		c.jitter += (math.Abs((delay-c.last).Seconds()*1000) - c.jitter) / 16
		if number < c.highest {
			c.late++
		}
	}
	c.received++
	c.highest, c.last = max(c.highest, number), delay
	c.delays = append(c.delays, delay)
}
