package transport

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/internal/net/engine"
)

const (
	recordEvery = time.Minute // between two writes

	// recordLock is how long to wait for another process that holds the file. A process that gives up loses its
	// findings of the last minute.
	recordLock = time.Second
)

// HistoryFile returns the path for Config.History in the user's state folder, "" if the configuration wants none or the
// user does not have such a folder.
func HistoryFile(cfg config.Config) string {
	if !cfg.Remember || os.Getenv("STATE_DIRECTORY") == "" && os.Getenv("XDG_STATE_HOME") == "" &&
		os.Getenv("HOME") == "" {
		return ""
	}
	return statefile.Path(os.Getenv, "history")
}

// recorder keeps what an engine remembers in a file that other processes use too: it reads the file, adds the new
// findings, and writes it. The findings added by the others then count here.
type recorder struct {
	path   string
	engine *engine.Engine
	log    *slog.Logger
	told   bool // it was logged that the file cannot be used
	lost   bool // the file's content was lost, and this was logged
}

// load gives the engine the content of the file.
func (k *recorder) load() {
	if r, err := k.read(); err == nil {
		k.engine.SetRecord(r)
	} else {
		k.unusable(err)
	}
}

// read returns the content of the file: an empty record if there is no file, or if it contains something else.
func (k *recorder) read() (*estimate.Record, error) {
	b, err := statefile.Read(k.path, estimate.MaxRecord+1)
	if errors.Is(err, fs.ErrNotExist) {
		return emptyRecord(), nil
	}
	if err != nil {
		return nil, err
	}
	r, err := estimate.UnmarshalRecord(b)
	if err == nil {
		return r, nil
	}
	if !k.lost {
		k.lost = true
		k.log.Warn("cannot read the record of link rates; starting a new one", "file", k.path, "error", err)
	}
	return emptyRecord(), nil
}

func emptyRecord() *estimate.Record {
	var s estimate.Salt
	_, _ = rand.Read(s[:]) // rand.Read never fails
	return estimate.NewRecord(s)
}

// unusable logs, once, that the file cannot be used.
func (k *recorder) unusable(err error) {
	if !k.told {
		k.told = true
		k.log.Info("cannot store the rates of links; repair the file, or set remember = false", "file", k.path,
			"error", err)
	}
}

// keep saves every minute, and at the end of ctx.
func (k *recorder) keep(ctx context.Context) {
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.save()
		case <-ctx.Done():
			k.save()
			return
		}
	}
}

// save adds the new findings to the file.
func (k *recorder) save() {
	all := k.engine.Findings()
	if len(all) == 0 {
		return
	}
	if err := k.merge(all); err != nil {
		k.unusable(err)
	}
}

func (k *recorder) merge(all []engine.Finding) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordLock)
	defer cancel()
	if _, err := k.read(); err != nil { // do not create a lock beside another user's file that this user could not take
		return err
	}
	if err := statefile.Own(k.path); err != nil {
		return err
	}
	unlock, err := statefile.Lock(ctx, k.path)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := k.read()
	if err != nil {
		return err
	}
	for _, add := range all {
		add(r)
	}
	if err := statefile.Replace(k.path, r.Marshal(time.Now())); err != nil {
		return err
	}
	k.engine.SetRecord(r)
	return nil
}
