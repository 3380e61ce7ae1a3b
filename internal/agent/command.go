package agent

import (
	"crypto/rand"
	"errors"
	"net/http"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
)

// handleCommands takes the operator's commands. Whatever else is asked for is
// of a newer version than this one.
func handleCommands(mux *http.ServeMux, board *board) {
	mux.HandleFunc("POST "+protocol.PathStartEmpty, func(w http.ResponseWriter, r *http.Request) {
		command, err := board.readCommand(r)
		if err == nil {
			err = board.command(command)
		}
		switch {
		case errors.Is(err, protocol.ErrSignature):
			http.Error(w, err.Error(), http.StatusForbidden)
		case errors.Is(err, protocol.ErrNotHeld):
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, protocol.Unsupported, http.StatusNotFound)
	})
}

// readCommand reads a command to this member. The password is read at each use:
// the mounted one may be a minute behind the operator's, who tries again.
func (b *board) readCommand(r *http.Request) (protocol.StartEmpty, error) {
	password, err := b.config.password(userOperator)
	if err != nil {
		return protocol.StartEmpty{}, protocol.ErrSignature
	}
	to := protocol.Addressee{ClusterID: b.config.ClusterID, Shard: b.config.Shard, Node: b.config.Node}
	return protocol.ReadStartEmpty(r, password, to)
}

// command notes a command for the next try to start, if the member is still in
// the hold that it is about.
func (b *board) command(command protocol.StartEmpty) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hold == "" || b.hold != command.Hold || b.verdict.Decision != command.Decision {
		return protocol.ErrNotHeld
	}
	b.commanded = true
	return nil
}

// takeCommand is the decision that a command since the last try to start was
// about, and whether there was one. It counts once, and for that hold alone: see decide.
func (b *board) takeCommand() (decision protocol.Decision, given bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	given, b.commanded = b.commanded, false
	return b.verdict.Decision, given
}

// holdFor names the hold that a verdict means: the same one for as long as the
// decision is the same. The caller holds the lock.
func (b *board) holdFor(phase probe.Phase, verdict guard.Verdict) string {
	switch {
	case phase != probe.Held || !wantsWord(verdict.Decision):
		return ""
	case b.hold != "" && b.verdict.Decision == verdict.Decision:
		return b.hold
	}
	return rand.Text()[:holdLength]
}

// holdLength is how many letters name a hold: enough that none is met again.
const holdLength = 10

// wantsWord says whether somebody's word can end a hold.
func wantsWord(decision protocol.Decision) bool {
	return decision == protocol.DecisionHeldEmpty || decision == protocol.DecisionTableDamaged ||
		decision == protocol.DecisionDataDamaged
}
