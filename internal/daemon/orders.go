package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	download "github.com/tributary-http/tributary/internal/get"
	"github.com/tributary-http/tributary/internal/link/host"
)

// stepTime is between two words on how far an order is.
const stepTime = 250 * time.Millisecond

// orderStep tells the host how far an order is.
type orderStep struct {
	Type      string `json:"type"` // "at"
	Name      string `json:"name,omitempty"`
	Bytes     int64  `json:"bytes"`
	Size      int64  `json:"size"`
	Validator string `json:"validator,omitempty"`
	Place     string `json:"place,omitempty"`
}

// orderEnd tells it how an order ended.
type orderEnd struct {
	Type  string `json:"type"` // "done", "stopped", "failed"
	Error string `json:"error,omitempty"`
	Again bool   `json:"again,omitempty"` // it may work another time
}

// fillOrders fills the files of the host until ctx ends: what the user of a phone downloads.
func (d *Daemon) fillOrders(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-d.hosted.host.Orders():
			running.Go(func() {
				defer o.Close()
				d.fill(ctx, o)
			})
		}
	}
}

// fill fills one file, and tells how that goes.
func (d *Daemon) fill(ctx context.Context, o *host.Order) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	header, err := download.Fields(nil, "tributary/"+d.version)
	if err != nil { // of an impossible version
		_ = o.Tell(orderEnd{Type: "failed", Error: err.Error()})
		return
	}
	h := &download.Held{File: o.File, Version: download.Version{Validator: o.Validator, Size: o.Size, Place: o.Place}, Have: o.Have}
	m := download.NewMeter()
	type beginning struct {
		name    string
		version download.Version
	}
	begun := make(chan beginning, 1)
	ended := make(chan error, 1)
	go func() { // ends with ctx, and is waited for
		g := &download.Getter{Engine: d.engine, Options: download.Options{Header: header}}
		_, err := g.Fill(ctx, o.URL, h, m, func(name string, v download.Version) {
			select {
			case begun <- beginning{name, v}:
			case <-ctx.Done():
			}
		})
		ended <- err
	}()
	now := beginning{version: h.Version}
	at := func(bytes, size int64) {
		v := now.version
		if o.Tell(orderStep{"at", now.name, bytes, size, v.Validator, v.Place}) != nil {
			stop() // nobody hears it
		}
	}
	tick := time.NewTicker(stepTime)
	defer tick.Stop()
	wanted := o.Stop()
	for last := int64(-1); ; {
		select {
		case now = <-begun:
			at(0, now.version.Size)
		case <-tick.C:
			if _, have, size := m.Now(); have != last {
				last = have
				at(have, size)
			}
		case <-wanted:
			wanted = nil
			stop()
		case err := <-ended:
			now.version = h.Version
			at(h.Have, h.Size)
			_ = o.Tell(end(err))
			return
		}
	}
}

func end(err error) orderEnd {
	var e *download.Error
	switch {
	case err == nil:
		return orderEnd{Type: "done"}
	case !errors.As(err, &e):
		return orderEnd{Type: "failed", Error: err.Error()}
	case e.Kind == download.Canceled:
		return orderEnd{Type: "stopped"}
	}
	return orderEnd{Type: "failed", Error: e.Err.Error(), Again: e.Temporary}
}
