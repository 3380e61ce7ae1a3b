package agent

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// A probe that would say no to a member that starts waits for its yes; one to a
// member that has been ready does not. The time is the test's own.
func TestProbesWaitWhileAMemberStarts(t *testing.T) {
	t.Parallel()
	replica := replicaView(0, &valkey.PrimaryLink{Up: true})
	answers := func(b *board) { b.answered(time.Now(), replica) }
	for name, test := range map[string]struct {
		path   string
		before func(*board)
		then   func(*board) // just before 100 ms are over
		status int
		after  time.Duration
	}{
		"it becomes ready":                 {protocol.PathReady, nil, answers, http.StatusOK, 100 * time.Millisecond},
		"it does not become ready":         {protocol.PathReady, nil, nil, http.StatusServiceUnavailable, probeWait},
		"it is ready":                      {protocol.PathReady, answers, nil, http.StatusOK, 0},
		"it starts":                        {protocol.PathStarted, nil, answers, http.StatusOK, 100 * time.Millisecond},
		"it does not start":                {protocol.PathStarted, nil, nil, http.StatusServiceUnavailable, probeWait},
		"it was ready and is not any more": {protocol.PathReady, func(b *board) { answers(b); b.setPhase(probe.Stopping) }, nil, http.StatusServiceUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBoard(Config{}, slog.New(slog.DiscardHandler))
				b.setPhase(probe.Up)
				if test.before != nil {
					test.before(b)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					time.Sleep(100*time.Millisecond - probeLook/2)
					if test.then != nil {
						test.then(b)
					}
				}()
				asked := time.Now()
				answer := httptest.NewRecorder()
				handler(b).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, test.path, nil))
				if took := time.Since(asked); answer.Code != test.status || took != test.after {
					t.Errorf("answered %d after %s, want %d after %s", answer.Code, took, test.status, test.after)
				}
				<-done
			})
		})
	}
}

// An older agent says of a newer operator's command that it does not know it.
func TestUnknownPathsAreUnsupported(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(handler(newBoard(Config{}, slog.New(slog.DiscardHandler))))
	defer server.Close()
	for _, path := range []string{"/v2/start-empty", "/"} {
		answer, err := http.Post(server.URL+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusNotFound || strings.TrimSpace(string(said)) != protocol.Unsupported {
			t.Errorf("%s is answered %d %q: %v", path, answer.StatusCode, said, err)
		}
	}
}
