package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
)

const (
	// decideEvery is the time between tries to start.
	decideEvery = 500 * time.Millisecond
	// patience is how long a primary with data waits for the word of all nodes of
	// its shard: after everything has stopped, their agents are back within seconds.
	patience = 5 * time.Second
	// askAgain is the time between two rounds meanwhile.
	askAgain = 100 * time.Millisecond
)

// mayStart returns true once the server may start, and false when the context
// ends before that.
func (a *agent) mayStart(ctx context.Context) bool {
	for {
		verdict := a.tryStart(ctx)
		if ctx.Err() != nil {
			return false
		}
		if starts(verdict.Decision) {
			a.believeTable()
			a.board.setReplaced(verdict.Decision == protocol.DecisionStartReplaced)
			a.board.decide(probe.Deciding, verdict)
			return true
		}
		phase, wait := probe.Held, decideEvery
		if verdict.Decision == protocol.DecisionUndecided {
			phase, wait = probe.Deciding, askAgain
		}
		a.board.decide(phase, verdict)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

func starts(decision protocol.Decision) bool {
	return decision == protocol.DecisionStart || decision == protocol.DecisionStartReplaced
}

// tryStart goes through everything that may speak against a start, in the order
// in which it must be safe: nothing on the volume is read before the lock is
// held, and nothing removed before the volume is known to be the member's.
func (a *agent) tryStart(ctx context.Context) guard.Verdict {
	if err := a.takeVolume(); err != nil {
		return refusal(err)
	}
	if err := a.obey(); err != nil {
		return refusal(err)
	}
	found, err := a.readFiles()
	if err != nil {
		return refusal(err)
	}
	a.board.setFiles(found)
	if full, waits := a.makeRoom(); waits {
		return full
	}
	member := guard.Member{
		Node:      a.config.Node,
		ID:        string(found.self.ID),
		Known:     found.known,
		Role:      found.role(),
		OwnsSlots: found.known && !found.self.Slots.IsEmpty(),
		Epoch:     found.self.ConfigEpoch,
		Empty:     found.empty,
		Damage:    a.damage,
		Restored:  a.restored,
		Released:  a.released,
	}
	return guard.Decide(member, a.ask(ctx, member))
}

// ask asks the shard's other members, when their answers can matter.
func (a *agent) ask(ctx context.Context, member guard.Member) guard.Shard {
	nodes, known := a.config.shardNodes()
	if alone := known && len(nodes) < 2; alone || !guard.NeedsShard(member) {
		return guard.Shard{Nodes: nodes, NodesKnown: known}
	}
	limit := askTime
	if member.Empty != protocol.Yes {
		limit = briefAskTime
	}
	if a.asking.IsZero() {
		a.asking = time.Now()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	shard := askShard(ctx, a.config, a.began)
	shard.Patient = time.Since(a.asking) < patience
	return shard
}

// refusal is the decision that an error about the volume stands for.
func refusal(err error) guard.Verdict {
	var foreign *volume.ForeignError
	switch {
	case errors.Is(err, volume.ErrLocked):
		return guard.Verdict{Decision: protocol.DecisionVolumeLocked, Message: err.Error()}
	case errors.As(err, &foreign):
		return guard.Verdict{Decision: protocol.DecisionForeignVolume, Message: err.Error()}
	}
	return guard.Verdict{Decision: protocol.DecisionVolumeUnusable, Message: err.Error()}
}

// takeVolume locks the volume for good, proves that it is the member's, removes
// left-overs and mends the node table.
func (a *agent) takeVolume() error {
	if found, err := a.config.measure(time.Now()); err == nil {
		a.board.setDisk(found.disk)
	}
	if a.lock == nil {
		lock, err := volume.Lock(a.config.Data)
		if err != nil {
			return err
		}
		a.lock, a.began = lock, time.Now()
	}
	if err := volume.Claim(a.config.Data, a.config.Identity); err != nil {
		return err
	}
	return a.clean()
}

func (a *agent) clean() error {
	if a.cleaned {
		return nil
	}
	removed, err := volume.Clean(a.config.Data)
	if len(removed) > 0 {
		a.log.Info("removed what interrupted saves left behind", "files", removed)
	}
	if err != nil {
		a.log.Warn("left-overs could not be removed", "error", err)
	}
	a.mendTable()
	a.heal()
	if a.config.Ephemeral {
		if err := volume.RemoveDump(a.config.Data); err != nil {
			return fmt.Errorf("removing an old dump: %w", err)
		}
	}
	a.cleaned = true
	return nil
}

// heal mends the node table. One that cannot be mended is the server's to judge.
func (a *agent) heal() {
	switch changed, err := volume.HealTable(a.config.Data); {
	case err != nil:
		a.log.Warn("the node table could not be mended", "error", err)
	case changed > 0:
		a.log.Info("replicas in the node table were given their primaries' shard ids", "entries", changed)
	}
}

// readFiles reads the member's place, its emptiness, and whether the server can
// use the files. A member without a key loses nothing with a damaged node table: it
// starts blank, as on a new volume.
func (a *agent) readFiles() (files, error) {
	appendOnly, err := a.config.appendOnly()
	if err != nil {
		return files{}, err
	}
	found := files{empty: volume.Emptiness(a.config.Data, appendOnly)}
	a.damage.TooNew = a.tooNew(appendOnly)
	if a.damage.Table != "" && a.damage.TooNew == "" && found.empty == protocol.Yes {
		if err := a.setAside(true); err != nil {
			return files{}, err
		}
	}
	found.self, found.known, err = volume.Self(a.config.Data)
	if err != nil {
		a.log.Warn("the node table cannot be read", "error", err)
	}
	return found, nil
}
