package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	download "github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link/appbridge"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// stepTime is the interval between progress reports of an order.
const stepTime = 250 * time.Millisecond

// syncTime is the interval at which received bytes are synced to the disk, so that they survive a dead battery.
const syncTime = 5 * time.Second

// orderStep reports the progress of an order to the app.
type orderStep struct {
	Type  string `json:"type"` // "at"
	Name  string `json:"name,omitempty"`
	Bytes int64  `json:"bytes"` // bytes in the file, in any order
	// of these, the bytes from the beginning without a gap that are certainly on the disk
	Kept      int64  `json:"kept"`
	Size      int64  `json:"size"`
	Validator string `json:"validator,omitempty"`
	Place     string `json:"place,omitempty"`
	Mark      string `json:"mark,omitempty"`
	// Links are the bytes that each link has delivered for this order, in the order of their first bytes.
	Links []engine.LinkBytes `json:"links,omitempty"`
}

// orderEnd reports the end of an order to the app.
type orderEnd struct {
	Type  string `json:"type"`            // "done", "stopped", "failed"
	Again bool   `json:"again,omitempty"` // a retry may succeed

	// The cause of a failure.
	Code   download.Code `json:"code,omitempty"`
	Host   string        `json:"host,omitempty"`
	Status int           `json:"status,omitempty"` // of the HTTP answer
	Error  string        `json:"error,omitempty"`  // in English, for a log
}

// fillOrders downloads into the files of the app, which a phone's user ordered, until ctx ends.
func (d *Daemon) fillOrders(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-d.appBridge.bridge.Orders():
			running.Go(func() {
				defer o.Close()
				d.fill(ctx, o)
			})
		}
	}
}

// fill downloads into one file and reports its progress.
func (d *Daemon) fill(ctx context.Context, o *appbridge.Order) {
	ctx, stop := context.WithCancel(transport.With(ctx, func(w *transport.Options) { w.Links.Unmetered = o.Unmetered }))
	defer stop()
	options, err := d.options(o)
	if err != nil {
		_ = o.Tell(orderEnd{Type: "failed", Code: download.CodeBadURL, Error: err.Error()})
		return
	}
	h := &download.OpenFile{
		File: o.File, Version: download.Version{Validator: o.Validator, Size: o.Size, Place: o.Place, Mark: o.Mark},
		Have: o.Have,
	}
	m := download.NewMeter()
	now := orderStep{Type: "at"}
	version := func(v download.Version) {
		now.Size, now.Validator, now.Place, now.Mark = v.Size, v.Validator, v.Place, v.Mark
	}
	version(h.Version)
	now.Bytes, now.Kept = o.Have, o.Have
	tell := func() {
		now.Links = now.Links[:0]
		for _, l := range m.Links() {
			now.Links = append(now.Links, engine.LinkBytes{Link: l.Link, Bytes: l.Bytes})
		}
		if o.Tell(now) != nil {
			stop() // the app is gone
		}
	}
	type beginning struct {
		name    string
		version download.Version
	}
	begun := make(chan beginning)
	type ending struct {
		name string
		err  error
	}
	ended := make(chan ending)
	go func() { // ends with ctx; fill waits for it
		g := &download.Getter{Transport: d.out, Options: options}
		r, err := g.Fill(ctx, o.URL, h, m, func(name string, v download.Version) {
			select {
			case begun <- beginning{name, v}:
			case <-ctx.Done():
			}
		})
		ended <- ending{r.File, err}
	}()
	tick, due := time.NewTicker(stepTime), time.NewTicker(d.syncTime)
	defer tick.Stop()
	defer due.Stop()
	wanted := o.Stop()
	for {
		select {
		case b := <-begun: // before the file loses its content
			now.Name, now.Bytes, now.Kept = b.name, 0, 0
			version(b.version)
			tell()
		case <-tick.C:
			if _, have, _ := m.Now(); have != now.Bytes && have > 0 {
				now.Bytes = have
				tell()
			}
		case <-due.C:
			if have := m.Prefix(); o.File.Sync() == nil { // the reported bytes have been written
				now.Kept = max(now.Kept, have)
			}
		case <-wanted:
			wanted = nil
			stop()
		case e := <-ended:
			if e.name != "" {
				now.Name = e.name
			}
			version(h.Version)
			if now.Bytes = h.Have; e.err == nil || o.File.Sync() == nil { // a complete file has been synced
				now.Kept = h.Have
			}
			tell()
			_ = o.Tell(end(e.err))
			return
		}
	}
}

// options returns the options of the download that an order asks for. Errors do not quote the order.
func (d *Daemon) options(o *appbridge.Order) (options download.Options, err error) {
	if options.Header, err = download.Fields(o.Header, "tributary/"+d.version); err == nil && o.Checksum != "" {
		options.Checksum, err = download.ParseChecksum(o.Checksum)
	}
	return options, err
}

func end(err error) orderEnd {
	var e *download.Error
	switch {
	case err == nil:
		return orderEnd{Type: "done"}
	case !errors.As(err, &e):
		return orderEnd{Type: "failed", Code: download.CodeBadAnswer, Error: err.Error()}
	case e.Kind == download.Canceled:
		return orderEnd{Type: "stopped"}
	}
	return orderEnd{
		Type:   "failed",
		Again:  e.Temporary,
		Code:   e.Code(),
		Host:   e.Host,
		Status: e.Status,
		Error:  e.Err.Error(),
	}
}
