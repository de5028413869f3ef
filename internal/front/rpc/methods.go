package rpc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-http/tributary/internal/front/queue"
)

// methods are the methods that need the token.
var methods = map[string]func(*Server, args) (any, error){
	"aria2.addUri":               (*Server).addURI,
	"aria2.remove":               (*Server).remove,
	"aria2.forceRemove":          (*Server).remove,
	"aria2.pause":                (*Server).pause,
	"aria2.forcePause":           (*Server).pause,
	"aria2.pauseAll":             func(s *Server, _ args) (any, error) { return ok(s.Queue.PauseAll()) },
	"aria2.forcePauseAll":        func(s *Server, _ args) (any, error) { return ok(s.Queue.PauseAll()) },
	"aria2.unpause":              (*Server).unpause,
	"aria2.unpauseAll":           func(s *Server, _ args) (any, error) { return ok(s.Queue.UnpauseAll()) },
	"aria2.changePosition":       (*Server).changePosition,
	"aria2.tellStatus":           (*Server).tellStatus,
	"aria2.tellActive":           (*Server).tellActive,
	"aria2.tellWaiting":          (*Server).tellWaiting,
	"aria2.tellStopped":          (*Server).tellStopped,
	"aria2.getUris":              (*Server).getURIs,
	"aria2.getFiles":             (*Server).getFiles,
	"aria2.getServers":           (*Server).getServers,
	"aria2.getPeers":             (*Server).getPeers,
	"aria2.getOption":            (*Server).getOption,
	"aria2.changeOption":         (*Server).changeOption,
	"aria2.getGlobalOption":      (*Server).getGlobalOption,
	"aria2.changeGlobalOption":   (*Server).changeGlobalOption,
	"aria2.getGlobalStat":        (*Server).getGlobalStat,
	"aria2.purgeDownloadResult":  func(s *Server, _ args) (any, error) { return ok(s.Queue.Purge()) },
	"aria2.removeDownloadResult": (*Server).removeDownloadResult,
	"aria2.getVersion":           (*Server).getVersion,
	"aria2.getSessionInfo": func(s *Server, _ args) (any, error) {
		return map[string]string{"sessionId": s.Session}, nil
	},
	// changes are saved before they are confirmed
	"aria2.saveSession": func(*Server, args) (any, error) { return ok(nil) },
}

// unsupported are the methods of aria2 that are not for HTTP downloads, or that end the program.
var unsupported = map[string]bool{
	"aria2.addTorrent": true, "aria2.addMetalink": true, "aria2.changeUri": true, "aria2.shutdown": true,
	"aria2.forceShutdown": true,
}

func listMethods(*message, args) (any, error) {
	return append(slices.Sorted(maps.Keys(methods)), "system.listMethods", "system.listNotifications",
		"system.multicall"), nil
}

func listNotifications(*message, args) (any, error) {
	var all []string
	for _, status := range []queue.Status{queue.Active, queue.Paused, queue.Removed, queue.Complete, queue.Failed} {
		all = append(all, notifications[status])
	}
	return all, nil
}

// ok returns the result of methods that have none.
func ok(err error) (any, error) { return "OK", err }

// gid returns the GID at the beginning of the parameters. Front ends may shorten it.
func (a args) gid() (gid string, err error) {
	if err = a.get(0, &gid); err != nil {
		return "", err
	}
	if _, err := strconv.ParseUint(gid, 16, 64); err != nil || len(gid) > 16 {
		return "", failed("Invalid GID %s", gid)
	}
	return strings.ToLower(gid), nil
}

// changed returns the result of a method that changes a download. otherwise is the error if the state of the download
// does not allow it.
func changed(gid string, err error, otherwise string) (any, error) {
	if state := (queue.StateError{}); errors.As(err, &state) {
		return nil, failed(otherwise, state.GID)
	}
	return gid, err
}

func (s *Server) addURI(a args) (any, error) {
	var uris []any
	if err := a.get(0, &uris); err != nil {
		return nil, err
	}
	var o queue.Order
	for _, u := range uris {
		if u, ok := u.(string); ok {
			o.URLs = append(o.URLs, u)
		}
	}
	if len(o.URLs) == 0 {
		return nil, failed("URI is not provided.")
	}
	given, err := a.options(1)
	if err != nil {
		return nil, err
	}
	place := -1
	if err := a.may(2, &place); err != nil {
		return nil, err
	}
	given.apply(&o)
	o.GID, o.Unmetered = given.text("gid"), given.text(unmetered) == "true"
	gid, err := s.Queue.Add(o, given.text("pause") == "true", place)
	if errors.Is(err, queue.ErrURLs) {
		return nil, failed("No URI to download.")
	}
	return gid, err
}

func (s *Server) remove(a args) (any, error) {
	gid, err := a.gid()
	if err == nil {
		gid, err = s.Queue.Remove(gid)
	}
	return changed(gid, err, "Active Download not found for GID#%s")
}

func (s *Server) pause(a args) (any, error) {
	gid, err := a.gid()
	if err == nil {
		gid, err = s.Queue.Pause(gid)
	}
	return changed(gid, err, "GID#%s cannot be paused now")
}

func (s *Server) unpause(a args) (any, error) {
	gid, err := a.gid()
	if err == nil {
		gid, err = s.Queue.Unpause(gid)
	}
	return changed(gid, err, "GID#%s cannot be unpaused now")
}

func (s *Server) removeDownloadResult(a args) (any, error) {
	gid, err := a.gid()
	if err == nil {
		_, err = s.Queue.Forget(gid)
	}
	return changed("OK", err, "Could not remove download result of GID#%s")
}

func (s *Server) changePosition(a args) (any, error) {
	gid, err := a.gid()
	if err != nil {
		return nil, err
	}
	var by int
	var how string
	if err := errors.Join(a.get(1, &by), a.get(2, &how)); err != nil {
		return nil, err
	}
	place, known := map[string]func(from, last int) int{
		"POS_SET": func(int, int) int { return by },
		"POS_CUR": func(from, _ int) int { return from + by },
		"POS_END": func(_, last int) int { return last + by },
	}[how]
	if !known {
		return nil, failed("Illegal argument.")
	}
	to, err := s.Queue.Move(gid, place)
	if state := (queue.StateError{}); errors.As(err, &state) {
		return nil, failed("GID#%s not found in the waiting queue.", state.GID)
	}
	return to, err
}

// download returns the download that a call names.
func (s *Server) download(a args) (d queue.Download, err error) {
	gid, err := a.gid()
	if err != nil {
		return d, err
	}
	return s.Queue.Get(gid)
}

func (s *Server) tellStatus(a args) (any, error) {
	var keys []string
	if err := a.may(1, &keys); err != nil {
		return nil, err
	}
	d, err := s.download(a)
	return describe(d, keys), err
}

func (s *Server) tellActive(a args) (any, error) {
	var keys []string
	if err := a.may(0, &keys); err != nil {
		return nil, err
	}
	active, _, _, _, err := s.Queue.Lists()
	return describeAll(active, keys), err
}

func (s *Server) tellWaiting(a args) (any, error) {
	_, waiting, _, _, err := s.Queue.Lists()
	if err != nil {
		return nil, err
	}
	return page(a, waiting)
}

func (s *Server) tellStopped(a args) (any, error) {
	_, _, stopped, _, err := s.Queue.Lists()
	if err != nil {
		return nil, err
	}
	return page(a, stopped)
}

// page describes the requested part of a list: n downloads from an offset on or, if the offset is negative, backwards
// from there, where -1 is the last one.
func page(a args, all []queue.Download) (any, error) {
	var offset, n int
	var keys []string
	for _, err := range []error{a.get(0, &offset), a.get(1, &n), a.may(2, &keys)} {
		if err != nil {
			return nil, err
		}
	}
	if offset < 0 {
		slices.Reverse(all)
		offset = -1 - offset
	}
	offset = min(offset, len(all))
	return describeAll(all[offset:offset+min(max(n, 0), len(all)-offset)], keys), nil
}

func (s *Server) getURIs(a args) (any, error) {
	d, err := s.download(a)
	if err == nil && d.Status.Stopped() {
		err = failed("No URI data is available for GID#%s", d.GID)
	}
	return uris(d), err
}

func (s *Server) getFiles(a args) (any, error) {
	d, err := s.download(a)
	return files(d), err
}

func (s *Server) getServers(a args) (any, error) {
	d, err := s.download(a)
	if err == nil && d.Status != queue.Active {
		err = failed("No active download for GID#%s", d.GID)
	}
	if err != nil {
		return nil, err
	}
	return []any{map[string]any{"index": "1", "servers": []any{map[string]string{
		"uri": d.URLs[0], "currentUri": d.URLs[0], "downloadSpeed": number(int64(d.Rate)),
	}}}}, nil
}

func (s *Server) getPeers(a args) (any, error) {
	_, err := s.download(a)
	return []any{}, err
}

func (s *Server) getOption(a args) (any, error) {
	d, err := s.download(a)
	return s.orderOptions(d.Order), err
}

func (s *Server) changeOption(a args) (any, error) {
	gid, err := a.gid()
	if err != nil {
		return nil, err
	}
	var given options
	if err := a.get(1, &given); err != nil {
		return nil, err
	}
	if given.orders() {
		err = s.Queue.Change(gid, given.apply)
	} else {
		var d queue.Download
		if d, err = s.Queue.Get(gid); err == nil && d.Status.Stopped() {
			err = queue.StateError{GID: d.GID}
		}
	}
	return changed("OK", err, "Cannot change option for GID#%s")
}

func (s *Server) getGlobalOption(args) (any, error) {
	n, err := s.Queue.Concurrent()
	o := s.globalOptions()
	o["max-concurrent-downloads"] = number(int64(n))
	return o, err
}

func (s *Server) changeGlobalOption(a args) (any, error) {
	var given options
	if err := a.get(0, &given); err != nil {
		return nil, err
	}
	text := given.text(maxConcurrent)
	if text == "" {
		return ok(nil)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return nil, failed("We encountered a problem while processing the option '--%s'.", maxConcurrent)
	}
	return ok(s.Queue.SetMaxConcurrent(n))
}

func (s *Server) getGlobalStat(args) (any, error) {
	active, waiting, stopped, ever, err := s.Queue.Lists()
	rate := 0.0
	for _, d := range active {
		rate += d.Rate
	}
	return map[string]string{
		"downloadSpeed": number(int64(rate)), "uploadSpeed": "0", "numActive": number(int64(len(active))),
		"numWaiting": number(int64(len(waiting))), "numStopped": number(int64(len(stopped))),
		"numStoppedTotal": number(int64(ever)),
	}, err
}

// likeVersion is the version of aria2 that the answers correspond to. Front ends use it to detect features.
const likeVersion = "1.36.0"

func (s *Server) getVersion(args) (any, error) {
	return map[string]any{"version": likeVersion, "enabledFeatures": []string{"HTTPS"}, "tributary": s.Version}, nil
}

// number formats a number as aria2 does: as a string.
func number(n int64) string { return fmt.Sprint(n) }
