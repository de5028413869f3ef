package power

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync"
)

// FullLoad keeps every core and the loopback interface busy until ctx ends: the reference for utilisation (Skjolden
// 2019 section
// 7.1). It returns nil then, and an error if loopback cannot be used.
func FullLoad(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	out, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		return err
	}
	defer in.Close()

	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() { spin(ctx) })
	}
	wg.Go(func() { _, _ = io.Copy(io.Discard, in) })
	wg.Go(func() {
		<-ctx.Done()
		in.Close()
		out.Close()
	})
	for block := make([]byte, 1<<16); ; {
		if _, err := out.Write(block); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// spin keeps a core busy with additions, and returns the result so that they are not optimized away.
func spin(ctx context.Context) (x float64) {
	for ctx.Err() == nil {
		for range 1000 {
			x = x*1.0000001 + 1e-9
		}
	}
	return x
}
