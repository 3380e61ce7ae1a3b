package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
)

// requestTime bounds one request: the answers are small and lie ready.
const requestTime = 5 * time.Second

// serve answers on the agent's port, also after the context's end, until the
// returned function is called.
func serve(ctx context.Context, config Config, board *board) (stop func(), err error) {
	address := net.JoinHostPort(config.Bind, strconv.Itoa(protocol.Port))
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for probes: %w", err)
	}
	server := &http.Server{
		Handler:      handler(board),
		ReadTimeout:  requestTime,
		WriteTimeout: requestTime,
		IdleTimeout:  time.Minute,
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			board.log.Error("the web server ended", "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}, nil
}

func handler(board *board) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.PathFacts, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(board.facts(time.Now()))
	})
	handleProbe(mux, protocol.PathStarted, func() (string, bool) {
		seen, _ := board.look()
		return probe.Started(seen, time.Now()), true
	})
	handleProbe(mux, protocol.PathLive, func() (string, bool) {
		seen, _ := board.look()
		return probe.Live(seen, time.Now()), false
	})
	handleProbe(mux, protocol.PathReady, func() (string, bool) {
		seen, notReady := board.look()
		return notReady, !seen.EverReady
	})
	handleCommands(mux, board)
	return mux
}

const (
	// probeWait is how long a no to a member that starts is held back, since it
	// may become a yes: the kubelet asks once a second and waits for two, so that
	// a member counts as started, and as ready, the moment it is.
	probeWait = 900 * time.Millisecond
	// probeLook is the time between two looks meanwhile.
	probeLook = 20 * time.Millisecond
)

// handleProbe answers why not, or ok. whyNot also says whether a no may be held
// back; once a member has been ready, a no is told at once.
func handleProbe(mux *http.ServeMux, path string, whyNot func() (why string, mayWait bool)) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		why, mayWait := whyNot()
		for asked := time.Now(); why != "" && mayWait && time.Since(asked) < probeWait; why, mayWait = whyNot() {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(probeLook):
			}
		}
		if why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
}
