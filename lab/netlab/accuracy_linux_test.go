package netlab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpu returns the processor time that the link's emulator has taken.
func (l *Link) cpu(b *testing.B) time.Duration {
	b.Helper()
	var use unix.Rusage
	if err := l.emulator.do(func(time.Duration) { _ = unix.Getrusage(unix.RUSAGE_THREAD, &use) }); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// received returns how many bytes have arrived at the client's interface, as counted by the kernel.
func (l *Link) received(b *testing.B) uint64 {
	b.Helper()
	dev, err := l.device()
	if err != nil {
		b.Fatal(err)
	}
	return dev.Attrs().Statistics.RxBytes
}

func accuracyLab(b *testing.B) *Lab {
	b.Helper()
	Require(b)
	sc, err := Load("../../testdata/scenarios/hs.toml")
	if err != nil {
		b.Fatal(err)
	}
	sc.Objects = nil
	for i := range sc.Links {
		sc.Links[i].Down.Ramp, sc.Links[i].Up.Ramp = 0, 0
	}
	return start(b, sc)
}

// BenchmarkRate keeps both links of hs busy with nginx and curl and reports the rate that arrives, in percent of the
// specified one, and the emulators' share of one processor.
func BenchmarkRate(b *testing.B) {
	const warmUp, span = 2 * time.Second, 5 * time.Second
	l := accuracyLab(b)
	n, err := l.StartNginx(b.Context(), NginxOptions{})
	if err != nil {
		b.Fatal(err)
	}
	o, err := n.Object(250_000_000)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		var gets sync.WaitGroup
		for _, link := range l.Links() {
			cmd := l.Client(ctx, "curl", "-s", "--interface", link.Name, "-o", "/dev/null", o.URL)
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			gets.Go(func() { _ = cmd.Wait() })
		}
		time.Sleep(warmUp)
		began := time.Now()
		var bytes []uint64
		var cpu []time.Duration
		for _, link := range l.Links() {
			bytes, cpu = append(bytes, link.received(b)), append(cpu, link.cpu(b))
		}
		time.Sleep(span)
		var all time.Duration
		for i, link := range l.Links() {
			took := time.Since(began).Seconds()
			rate := float64(link.received(b)-bytes[i]) * 8 / took
			all += link.cpu(b) - cpu[i]
			b.ReportMetric(100*rate/float64(link.down.Rate), "%rate-"+link.Name)
		}
		b.ReportMetric(100*all.Seconds()/span.Seconds(), "%cpu")
		cancel()
		gets.Wait()
		if err := l.Fresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRTT reports how far round trips of small UDP packets are from the specified RTT, in milliseconds: idle, and
// with a TCP connection paced at 70 % of the rate on each link, whose bursts are part of the upper percentiles.
func BenchmarkRTT(b *testing.B) {
	for _, busy := range []bool{false, true} {
		b.Run(map[bool]string{false: "idle", true: "busy"}[busy], func(b *testing.B) {
			l := accuracyLab(b)
			stop := echo(b, l)
			defer stop()
			if busy {
				for _, link := range l.Links() {
					defer load(b, l, link, 0.7)()
				}
				time.Sleep(time.Second)
			}
			for b.Loop() {
				for _, link := range l.Links() {
					rtts := probe(b, link, 300)
					spec := link.down.Delay + link.up.Delay
					for _, p := range []int{10, 50, 90} {
						over := rtts[len(rtts)*p/100] - spec
						b.ReportMetric(float64(over)/1e6, fmt.Sprintf("ms-p%d-%s", p, link.Name))
					}
				}
			}
		})
	}
}

const echoPort = 7

func echo(b *testing.B, l *Lab) (stop func()) {
	b.Helper()
	var conn net.PacketConn
	err := l.InServer(func() (err error) {
		conn, err = net.ListenPacket("udp4", netip.AddrPortFrom(OriginAddr, echoPort).String())
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		buf := make([]byte, 100)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buf[:n], from)
		}
	})
	return func() { conn.Close(); running.Wait() }
}

// probe measures n round trips and returns them in order of length.
func probe(b *testing.B, link *Link, n int) []time.Duration {
	b.Helper()
	conn, err := link.DialContext(b.Context(), "udp4", netip.AddrPortFrom(OriginAddr, echoPort).String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	var rtts []time.Duration
	buf := make([]byte, 16)
	for range n {
		began := time.Now()
		if _, err := conn.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Read(buf); err != nil {
			b.Fatal(err)
		}
		rtts = append(rtts, time.Since(began))
		time.Sleep(2 * time.Millisecond)
	}
	slices.Sort(rtts)
	return rtts
}

// load sends over a link, from the server to the client, at the given share of its rate.
func load(b *testing.B, l *Lab, link *Link, share float64) (stop func()) {
	b.Helper()
	var ln net.Listener
	err := l.InServer(func() (err error) {
		ln, err = net.Listen("tcp4", netip.AddrPortFrom(OriginAddr, 0).String())
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	client, err := link.DialContext(b.Context(), "tcp4", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	server, err := ln.Accept()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := server.(*net.TCPConn).SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	rate := int(float64(link.down.Rate) / 8 * share)
	_ = raw.Control(func(fd uintptr) {
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate); err != nil {
			b.Error(err)
		}
	})
	var running sync.WaitGroup
	running.Go(func() { _, _ = io.Copy(io.Discard, client) })
	running.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := server.Write(buf); err != nil {
				return
			}
		}
	})
	return func() { client.Close(); server.Close(); ln.Close(); running.Wait() }
}
