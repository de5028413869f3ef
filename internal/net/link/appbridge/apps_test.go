package appbridge

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/appbridge/appbridgetest"
)

// TestMeters: only the apps that the app lists may use metered links; none may before it has listed any, or after an unknown word.
func TestMeters(t *testing.T) {
	a := &appbridgetest.App{}
	h := dial(t, a)
	links, err := h.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next(t, links)
	meters := func(uid int64) bool { return h.Meters(func() int64 { return uid }) }
	if meters(10200) {
		t.Error("before anything is told")
	}
	for _, tt := range []struct {
		apps                   string
		chosen, other, unknown bool
	}{
		{`{"metered":"all"}`, true, true, true},
		{`{"metered":"chosen","uids":[10200,-1]}`, true, false, false},
		{`{"metered":"none","uids":[10200]}`, false, false, false},
		{`{"metered":"some","uids":[10200]}`, false, false, false},
		{`{}`, false, false, false},
	} {
		a.Say(`{"type":"links","links":[],"apps":%s}`, tt.apps)
		next(t, h.Limited())
		if h.Pays() != tt.chosen {
			t.Errorf("%s: some app pays: %v", tt.apps, h.Pays())
		}
		if meters(10200) != tt.chosen || meters(10201) != tt.other || meters(UnknownApp) != tt.unknown {
			t.Errorf("%s: %v, %v, %v", tt.apps, meters(10200), meters(10201), meters(UnknownApp))
		}
	}
	a.Say(`{"type":"links","links":[],"apps":{"metered":"all"}}`)
	next(t, h.Limited())
	if !h.Meters(func() int64 { t.Error("it is asked whose a connection is, though all may"); return 0 }) {
		t.Error("all may")
	}
}

// TestOwner: the app reports the owner of a connection; without an answer, or with a late one, the owner stays unknown.
func TestOwner(t *testing.T) {
	a := &appbridgetest.App{}
	h := dial(t, a)
	proxy, client := netip.MustParseAddrPort("[::ffff:127.0.0.1]:8080"), netip.MustParseAddrPort("127.0.0.1:40123")
	for answer, want := range map[string]int64{`,"uid":10200`: 10200, `,"uid":-1`: UnknownApp, ``: UnknownApp} {
		told := make(chan int64, 1)
		go func() { told <- h.Owner(t.Context(), proxy, client) }()
		m := next(t, a.Heard)
		if m["type"] != "owner" || m["local"] != "127.0.0.1:40123" || m["remote"] != "127.0.0.1:8080" {
			t.Fatalf("it is asked %v", m)
		}
		a.Say(`{"type":"owned","id":%v%s}`, m["id"], answer)
		if got := next(t, told); got != want {
			t.Errorf("%q: %d, want %d", answer, got, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if got := h.Owner(ctx, proxy, client); got != UnknownApp {
		t.Errorf("without an answer: %d", got)
	}
	a.HangUp()
	next(t, h.Gone())
	if got := h.Owner(t.Context(), proxy, client); got != UnknownApp {
		t.Errorf("without an app: %d", got)
	}
}

// TestFloods: the most name lookups that may be open, left unanswered by the app, leave room for the question about the owner of a
// connection, and the other way round.
func TestFloods(t *testing.T) {
	proxy, client := netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.1:40123")
	name := func(ctx context.Context, h *Bridge) string {
		addrs, err := h.Lookup(ctx, link.Link{Name: "wlan0", Handle: 5}, "a.example")
		return fmt.Sprint(addrs, err)
	}
	owner := func(ctx context.Context, h *Bridge) string { return fmt.Sprint(h.Owner(ctx, proxy, client)) }
	for _, tt := range []struct {
		flood, other       func(context.Context, *Bridge) string
		asks, answer, want string
	}{
		{name, owner, "owner", `{"type":"owned","id":%v,"uid":10200}`, "10200"},
		{owner, name, "resolve", `{"type":"resolved","id":%v,"addrs":["192.0.2.1"]}`, "[192.0.2.1] <nil>"},
	} {
		a := &appbridgetest.App{}
		h := dial(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		for range asked {
			flood.Go(func() { tt.flood(ctx, h) })
		}
		for range asked {
			next(t, a.Heard)
		}
		told := make(chan string, 1)
		go func() { told <- tt.other(ctx, h) }()
		select {
		case m := <-a.Heard:
			if m["type"] != tt.asks {
				t.Errorf("the app is asked %v", m)
			}
			a.Say(tt.answer, m["id"])
			if got := next(t, told); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.asks, got, tt.want)
			}
		case got := <-told:
			t.Errorf("%s: not asked: %s", tt.asks, got)
		}
		cancel()
		flood.Wait()
		h.mu.Lock()
		if len(h.questions) != 0 || h.open["owner"] != 0 || h.open["resolve"] != 0 {
			t.Errorf("%d questions stay open: %v", len(h.questions), h.open)
		}
		h.mu.Unlock()
	}
}

// TestTokens: the last token of the gateway counts.
func TestTokens(t *testing.T) {
	a := &appbridgetest.App{}
	h := dial(t, a)
	a.Say(`{"type":"gateway","token":"first"}`)
	a.Say(`{"type":"gateway","token":"second"}`)
	a.Say(`{"type":"links","links":[]}`)
	next(t, h.Limited())
	if got := next(t, h.Tokens()); got != "second" {
		t.Errorf("%q", got)
	}
	select {
	case got := <-h.Tokens():
		t.Errorf("%q, too", got)
	default:
	}
}

// TestPairings: requests of the app about relays are passed on, and answered with their number.
func TestPairings(t *testing.T) {
	a := &appbridgetest.App{}
	h := dial(t, a)
	a.Say(`{"type":"pair","id":7,"link":"tributary://a:1#b.c","address":"x"}`)
	p := next(t, h.Pairings())
	if p.Invitation != "tributary://a:1#b.c" || p.Address != "" {
		t.Errorf("%+v", p)
	}
	p.Done("a:1")
	if m := next(t, a.Heard); m["type"] != "paired" || m["id"] != 7.0 || m["address"] != "a:1" || m["code"] != nil {
		t.Errorf("%v", m)
	}
	a.Say(`{"type":"forget","id":8,"address":"a:1"}`)
	p = next(t, h.Pairings())
	if p.Invitation != "" || p.Address != "a:1" {
		t.Errorf("%+v", p)
	}
	p.Failed(CodeNotSaved, ErrGone)
	if m := next(t, a.Heard); m["type"] != "forgotten" || m["id"] != 8.0 || m["code"] != "not_saved" || m["error"] == nil {
		t.Errorf("%v", m)
	}
}
