package rpc

import (
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// fill returns a batch of n times the same text, but no more than a request may have.
func fill(text string, n int) string {
	n = min(n, (maxRequest-2)/(len(text)+1))
	return "[" + strings.TrimSuffix(strings.Repeat(text+",", n), ",") + "]"
}

// TestCosts: what strangers send costs little memory, whatever its form.
func TestCosts(t *testing.T) {
	t.Run("R224 requests without the token", testCosts)
}

func testCosts(t *testing.T) {
	s := NewServer(Config{Token: secret, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	multi := `{"jsonrpc":"2.0","id":1,"method":"system.multicall","params":[` + fill(`{"methodName":"system.listMethods"}`, maxCalls-1) + `]}`
	free := `{"jsonrpc":"2.0","id":1,"method":"system.listMethods"}`
	for name, text := range map[string]string{
		"multicalls in a batch": fill(multi, maxCalls),
		"a multicall":           multi,
		"a batch":               fill(free, maxCalls),
		"a longer batch":        fill(free, maxCalls+1),
		"a batch of numbers":    fill("1", maxRequest),
		"many parameters":       `{"jsonrpc":"2.0","id":1,"method":"system.multicall","params":` + fill("1", 900_000) + `}`,
		"a multicall of much":   `{"jsonrpc":"2.0","id":1,"method":"system.multicall","params":[` + fill("1", 900_000) + `]}`,
		"unknown methods":       fill(`{"jsonrpc":"2.0","id":1,"method":"x"}`, maxCalls),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer, _, shown := s.answer([]byte(text), extension)
			size := len(encode(answer))
			runtime.ReadMemStats(&after)
			cost := after.TotalAlloc - before.TotalAlloc
			if t.Logf("%d bytes cost %d kB; the answer has %d", len(text), cost>>10, size); cost > 32<<20 || size > 300<<10 || shown {
				t.Errorf("R224 %d bytes cost %d, and the answer has %d", len(text), cost, size)
			}
		})
	}
}

// TestRequestLimits: one bound holds for all calls of a request, and one for its answer.
func TestRequestLimits(t *testing.T) {
	t.Run("R224 the calls in batches and multicalls count together", testCalls)
	t.Run("R224 calls beyond the limit of the answer are not carried out", testAnswer)
}

func testCalls(t *testing.T) {
	s := start(t, nil)
	stat := `{"methodName":"aria2.getGlobalStat","params":["token:` + secret + `"]}`
	multi := func(n int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"system.multicall","params":[` + fill(stat, n) + `]}`
	}
	refused := func(answer any) bool { return strings.Contains(fmt.Sprint(answer), "More than 1000 calls") }
	for _, c := range []struct {
		text string
		want bool
	}{
		{multi(999), false},
		{multi(1000), true},
		{"[" + multi(499) + "," + multi(499) + "]", false},
		{"[" + multi(499) + "," + multi(500) + "]", true},
	} {
		if _, answer := s.post(c.text); refused(answer) != c.want {
			t.Errorf("R224 %.80s: %.300v", c.text, answer)
		}
	}
}

func testAnswer(t *testing.T) {
	s := start(t, nil)
	header := []string{"X-A: " + strings.Repeat("x", 1<<20)}
	gid, _ := s.call("aria2.addUri", []string{"http://127.0.0.1:1/"}, map[string]any{"header": header, "pause": "true"}).(string)
	one := `{"methodName":"aria2.getOption","params":["token:` + secret + `","` + gid + `"]}`
	order := `{"methodName":"aria2.addUri","params":["token:` + secret + `",["http://127.0.0.1:1/"],{"pause":"true"}]}`
	calls := strings.TrimSuffix(fill(one, 30), "]") + "," + order + "]"
	_, answer := s.post(`{"jsonrpc":"2.0","id":1,"method":"system.multicall","params":[` + calls + `]}`)
	if size := len(encode(answer)); size > maxAnswer+1<<20 || !strings.Contains(string(encode(answer)), "larger than 16 MiB") {
		t.Errorf("R224 the answer has %d bytes", size)
	}
	if all, _ := s.call("aria2.tellWaiting", 0, 10, []string{"gid"}).([]any); len(all) != 1 {
		t.Errorf("R224 %v", all)
	}
}

// TestStrangers: sockets that do not show the token cost nobody a place.
func TestStrangers(t *testing.T) {
	t.Run("R224 sockets without the token", testStrangers)
}

func testStrangers(t *testing.T) {
	s := start(t, nil)
	known := s.socket()
	known.send(request(t, "aria2.getVersion"))
	known.read()
	ended := make(chan error, maxStrangers+maxSockets)
	for range maxStrangers + maxSockets {
		one := s.socket()
		go func() {
			_, _, err := one.Read(t.Context())
			ended <- err
		}()
	}
	for range maxSockets { // they made room
		if err := <-ended; err == nil {
			t.Fatal("R224 a stranger hears something")
		}
	}
	another := s.socket()
	another.send(request(t, "aria2.getVersion"))
	if m := another.read(); m["error"] != nil {
		t.Errorf("R224 %v", m)
	}
	known.send(request(t, "aria2.getVersion"))
	if m := known.read(); m["error"] != nil {
		t.Errorf("R224 %v", m)
	}
	for range maxSockets - 2 {
		full := s.socket()
		full.send(request(t, "aria2.getVersion"))
		full.read()
	}
	last := s.socket()
	last.send(request(t, "aria2.getVersion"))
	if _, _, err := last.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Errorf("R224 more than %d sockets: %v", maxSockets, err)
	}
}

// TestStrangersLeave: a socket has ten seconds to show the token, and no longer than until there are too many.
func TestStrangersLeave(t *testing.T) {
	t.Run("R224 strangers leave", func(t *testing.T) { synctest.Test(t, testStrangersLeave) })
}

func testStrangersLeave(t *testing.T) {
	var s strangers
	var all [maxStrangers + 1]atomic.Bool
	for i := range all {
		s.enter(func() { all[i].Store(true) })
	}
	ended := func() (n int) {
		for i := range all {
			if all[i].Load() {
				n++
			}
		}
		return n
	}
	if !all[0].Load() || ended() != 1 {
		t.Errorf("R224 the oldest makes room: %d have ended", ended())
	}
	time.Sleep(shortTime - time.Nanosecond)
	synctest.Wait()
	if ended() != 1 {
		t.Errorf("R224 too early: %d have ended", ended())
	}
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	if ended() != len(all) {
		t.Errorf("R224 they may stay: %d have ended", ended())
	}
	leave := s.enter(func() { t.Error("R224 a known socket is closed") })
	leave()
	time.Sleep(2 * shortTime)
}

// TestMalformedMulticall: a nested call that is not a struct, or whose parameters are not a list, is not carried out.
func TestMalformedMulticall(t *testing.T) {
	s := NewServer(Config{Token: secret, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	for _, nested := range []string{`7`, `"x"`, `{"methodName":"system.listMethods","params":{}}`} {
		answer, _, _ := s.answer([]byte(`{"jsonrpc":"2.0","id":1,"method":"system.multicall","params":[[`+nested+`]]}`), extension)
		if text := string(encode(answer)); !strings.Contains(text, "system.multicall expected struct.") {
			t.Errorf("%s: %s", nested, text)
		}
	}
}
