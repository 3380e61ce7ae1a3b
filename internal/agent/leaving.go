package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"valkey.io/valkey-operator/internal/agent/process"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

const (
	// handOverTime bounds what a member does for its shard before its server is
	// stopped. The server's own bound for a manual failover is 5 s.
	handOverTime = 6 * time.Second
	// refusedTime is for how long a replica that refused is asked again: it may be
	// about to have what it lacks, a link or its voters' ears.
	refusedTime = 2 * time.Second
	// outcomeEvery is the time between looks at what has become of a hand-over:
	// clients' writes wait meanwhile.
	outcomeEvery = 20 * time.Millisecond
	// quietTime is for how long a former primary must not have sent a client on to
	// its successor, and mostQuietWait bounds the wait for that.
	quietTime     = 200 * time.Millisecond
	mostQuietWait = 2 * time.Second
)

// departure is what lies between a member's being told to stop and its server's.
type departure struct {
	config   Config
	log      *slog.Logger
	password string
	own      *valkey.Conn
}

// leave lets the shard go on without the member: a primary hands its slots over
// to a replica, and a replica whose primary is stopping too ends after it. The
// note says what has become of the slots, empty: there was nothing to hand over.
func (a *agent) leave(ctx context.Context, server *process.Server) (note string) {
	if nodes, known := a.config.shardNodes(); known && len(nodes) < 2 {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTime)
	defer cancel()
	go func() {
		select {
		case <-server.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	note, err := a.depart(ctx)
	if err != nil {
		note = "its slots, if it has any, were not handed over: " + err.Error()
	}
	if note != "" {
		a.log.Info("left the shard", "note", note)
	}
	return note
}

func (a *agent) depart(ctx context.Context) (note string, err error) {
	password, err := a.config.password(userOperator)
	if err != nil {
		return "", err
	}
	d := &departure{config: a.config, log: a.log, password: password}
	if d.own, err = d.dial(ctx, a.config.loopback()); err != nil {
		return "", err
	}
	defer d.own.Close()
	view, err := d.own.View(ctx)
	if err != nil {
		return "", err
	}
	if view.Info.Role == valkey.RoleReplica {
		if view, err = d.outlastPrimary(ctx, view); err != nil {
			return "", err
		}
	}
	if view.Info.Role == valkey.RoleReplica {
		d.awaitQuiet(ctx) // a failover may have made it one a moment ago
		return "", nil
	}
	return d.handOver(ctx, view), nil
}

func (d *departure) dial(ctx context.Context, host string) (*valkey.Conn, error) {
	return valkey.Dial(ctx, valkey.Target{
		Address: net.JoinHostPort(host, strconv.Itoa(serverPort)), Username: userOperator, Password: d.password,
	})
}

// outlastPrimary keeps a replica alive while its primary is stopping: it may have
// been chosen as the successor a moment before it was told to stop itself, and
// then it becomes primary, and a promotion that nobody hears of must not be.
func (d *departure) outlastPrimary(ctx context.Context, view valkey.View) (valkey.View, error) {
	myself, _ := view.Myself()
	host, told := "", false
	for from, facts := range d.ask(ctx, view) {
		if facts.NodeID == string(myself.PrimaryID) && facts.Server == protocol.ServerStopping {
			host, told = from, true
		}
	}
	for told && view.Info.Role == valkey.RoleReplica && d.isStopping(ctx, host) && wait(ctx, outcomeEvery) {
		var err error
		if view, err = d.own.View(ctx); err != nil {
			return view, err
		}
	}
	return view, nil
}

func (d *departure) isStopping(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, briefAskTime)
	defer cancel()
	facts, err := protocol.Get(ctx, http.DefaultClient, host)
	return err == nil && facts.ClusterID == d.config.ClusterID && facts.Server == protocol.ServerStopping
}

// ask gathers the facts of the shard's other members, by host. Names may be some
// seconds behind the pods, so the servers that the own one is linked to are asked
// too; whoever answers says whose it is.
func (d *departure) ask(ctx context.Context, view valkey.View) map[string]protocol.Facts {
	ctx, cancel := context.WithTimeout(ctx, briefAskTime)
	defer cancel()
	named, stop := context.WithTimeout(ctx, briefAskTime/2)
	defer stop()
	hosts := slices.Concat(linkedTo(view.Info.Replication), resolve(named, d.config.Peers))
	slices.Sort(hosts)
	answers := askAll(ctx, slices.Compact(hosts))
	maps.DeleteFunc(answers, func(_ string, facts protocol.Facts) bool {
		return facts.ClusterID != d.config.ClusterID || facts.Shard != d.config.Shard || facts.Node == d.config.Node
	})
	return answers
}

// linkedTo are the hosts that a server replicates to or from.
func linkedTo(replication valkey.ReplicationInfo) []string {
	var hosts []string
	for _, replica := range replication.Replicas {
		hosts = append(hosts, replica.Host)
	}
	if replication.Primary != nil {
		hosts = append(hosts, replication.Primary.Host)
	}
	return hosts
}

// handOver has a replica take the place of a primary that owns slots.
func (d *departure) handOver(ctx context.Context, view valkey.View) (note string) {
	myself, known := view.Myself()
	if !known || view.Info.Role != valkey.RolePrimary || myself.Slots.IsEmpty() {
		return ""
	}
	began := time.Now()
	var trouble string
	for {
		host, node, why := successor(string(myself.ID), d.ask(ctx, view))
		if host == "" {
			trouble = why
			break
		}
		err := d.promote(ctx, host, myself.ID)
		if err == nil && d.isReplaced(ctx) {
			took := time.Since(began)
			d.awaitQuiet(ctx)
			return fmt.Sprintf("its slots were handed over to node %d within %d ms", node, took.Milliseconds())
		}
		trouble = fmt.Sprintf("node %d did not become primary in time", node)
		if err != nil {
			trouble = fmt.Sprintf("node %d refused: %v", node, err)
		}
		if time.Since(began) > refusedTime || !wait(ctx, quietTime) {
			break
		}
	}
	return "its slots were not handed over: " + trouble
}

// promote asks a replica to take its primary's place, if it is one still and can
// win its election. One that lost it would hold up writes for five seconds in vain.
func (d *departure) promote(ctx context.Context, host string, primary valkey.NodeID) error {
	conn, err := d.dial(ctx, host)
	if err != nil {
		return err
	}
	defer conn.Close()
	view, err := conn.View(ctx)
	if err != nil {
		return err
	}
	if myself, known := view.Myself(); !known || myself.PrimaryID != primary {
		return fmt.Errorf("it does not follow %s any more", primary)
	}
	if !view.Info.Replication.Primary.InSync() { // the server would not ask
		return errors.New("it is not in sync any more")
	}
	senders, err := conn.Senders(ctx)
	if err != nil {
		return err
	}
	if heard, voters := votes(view.Table, senders); heard <= voters/2 {
		return fmt.Errorf("only %d of %d primaries have a connection to it", heard, voters)
	}
	return conn.Failover(ctx, valkey.Graceful)
}

// isReplaced waits until the member's own server says that it is no primary of
// slots any more: only then is the hand-over done.
func (d *departure) isReplaced(ctx context.Context) bool {
	for {
		view, err := d.own.View(ctx)
		if err != nil {
			return false
		}
		if knowsReplaced(view) {
			return true
		}
		if !wait(ctx, outcomeEvery) {
			return false
		}
	}
}

// awaitQuiet waits until clients have learned of the successor: a connection that
// ends under a command is an error for its client, to be sent on is none.
func (d *departure) awaitQuiet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, mostQuietWait)
	defer cancel()
	for before := ""; ; {
		now, err := d.redirects(ctx)
		if err != nil || now == before || !wait(ctx, quietTime) {
			return
		}
		before = now
	}
}

// redirects counts, as text, how often the server has sent clients on.
func (d *departure) redirects(ctx context.Context) (string, error) {
	text, err := d.own.Raw(ctx, "INFO", "errorstats")
	_, rest, _ := strings.Cut(text, "errorstat_MOVED:")
	count, _, _ := strings.Cut(rest, "\r\n")
	return "MOVED " + count, err
}

// wait returns false when the context ends first.
func wait(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
