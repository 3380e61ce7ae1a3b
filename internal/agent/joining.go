package agent

import (
	"context"
	"strconv"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// A server that gets its first slots was in a minority of none until then, and
// waits before it serves for as long as the node timeout, between the server's
// CLUSTER_MIN_REJOIN_DELAY of 500 ms and CLUSTER_MAX_REJOIN_DELAY of 5 s. A blank
// member has nothing to protect by waiting, so it starts with a short timeout,
// and gets the cluster's own as soon as it serves. A handshake has its second
// whatever the timeout.
//
// Every member pings every other one twice within a timeout: so that large
// clusters are not busy with that alone, theirs is longer, by joiningPerMember.
const (
	leastJoiningTimeout = 500 * time.Millisecond
	mostJoiningTimeout  = 5 * time.Second
	joiningPerMember    = 50 * time.Millisecond
)

// joiningTimeout is the node timeout with which a blank member of a cluster of so
// many members starts.
func joiningTimeout(members int) time.Duration {
	return min(max(time.Duration(members)*joiningPerMember, leastJoiningTimeout), mostJoiningTimeout)
}

// defaultNodeTimeout is the server's own, in milliseconds.
const defaultNodeTimeout = "15000"

const nodeTimeoutSetting = "cluster-node-timeout"

// joiningLines are the last lines of the configuration of a blank member.
func (c Config) joiningLines(blank bool) []string {
	if !blank {
		return nil
	}
	timeout := joiningTimeout(c.memberCount())
	return []string{nodeTimeoutSetting + " " + strconv.FormatInt(timeout.Milliseconds(), 10)}
}

// nodeTimeout is the cluster's node timeout, as the operator's file says.
func (c Config) nodeTimeout() (string, error) {
	value, found, err := c.setting(nodeTimeoutSetting)
	if !found {
		value = defaultNodeTimeout
	}
	return value, err
}

// joined gives a member that started blank the cluster's node timeout once it
// serves: as a replica that has its primary's data, or with slots of its own.
func (s *sampler) joined(ctx context.Context, view valkey.View) {
	if !s.joining || !serves(view) {
		return
	}
	timeout, err := s.config.nodeTimeout()
	if err == nil {
		err = s.conn.ConfigSet(ctx, nodeTimeoutSetting, timeout)
	}
	if err != nil {
		s.trouble("the node timeout could not be set", err)
		return
	}
	s.joining = false
	s.board.log.Info("the server has joined the cluster", "nodeTimeout", timeout+"ms")
}

func serves(view valkey.View) bool {
	if !view.ClusterKnown || !view.Cluster.StateOK {
		return false
	}
	if link := view.Info.Replication.Primary; link != nil {
		return link.Up && !link.SyncInProgress
	}
	myself, known := view.Myself()
	return known && !myself.Slots.IsEmpty()
}
