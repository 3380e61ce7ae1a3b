package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/process"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
)

const (
	// decideEvery is the time between tries to start.
	decideEvery = 500 * time.Millisecond
	// askEndEvery is the time after which a server that has not ended is asked to again.
	askEndEvery = 5 * time.Second
	// tailLines is how many last lines of the server's log are quoted when it fails.
	tailLines = 8
	// terminationLog is where the kubelet looks for a last word.
	terminationLog = "/dev/termination-log"
)

// Run is an agent's life. It returns the process's exit code once the server
// has ended: 0 after the context's end, the server's own when it ended by itself.
// An error means that the agent cannot do its work at all.
func Run(ctx context.Context, config Config, output io.Writer, log *slog.Logger) (code int, err error) {
	agent := &agent{config: config, board: newBoard(config, log), output: output, log: log}
	stopServing, err := serve(ctx, config, agent.board)
	if err != nil {
		return 1, err
	}
	defer stopServing()
	// The server inherits this: a file that reaches its limit (see reserve) is a
	// failed write to it, and not its end.
	signal.Ignore(syscall.SIGXFSZ)
	agent.version = config.serverVersion(ctx)
	return agent.live(ctx)
}

type agent struct {
	config Config
	board  *board
	output io.Writer
	log    *slog.Logger

	lock    *os.File
	began   time.Time // when the lock was taken, or the last server ended: none of this member's runs since
	cleaned bool
	version version
	lacked  *want // how the last server ended for want of space, nil: it did not

	users   string   // what the server was given last at a start
	refused []string // the users that it did not start with
}

// live starts servers, one after the other, until one has ended for good.
func (a *agent) live(ctx context.Context) (code int, err error) {
	defer func() {
		if a.lock != nil {
			_ = a.lock.Close()
		}
	}()
	for {
		if !a.mayStart(ctx) {
			a.log.Info("stopped before the server was started")
			return 0, nil
		}
		code, again, err := a.supervise(ctx)
		if !again {
			return code, err
		}
		a.board.forget()
		a.began, a.cleaned = time.Now(), false
	}
}

// mayStart returns true once the server may start, and false when the context
// ends before that.
func (a *agent) mayStart(ctx context.Context) bool {
	for {
		verdict := a.tryStart(ctx)
		if ctx.Err() != nil {
			return false
		}
		if starts(verdict.Decision) {
			a.board.setReplaced(verdict.Decision == protocol.DecisionStartReplaced)
			a.board.decide(probe.Deciding, verdict)
			return true
		}
		a.board.decide(probe.Held, verdict)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(decideEvery):
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
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return askShard(ctx, a.config, a.began)
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

// readFiles reads the member's place and emptiness. A damaged node table is the
// server's to refuse.
func (a *agent) readFiles() (files, error) {
	appendOnly, err := a.config.appendOnly()
	if err != nil {
		return files{}, err
	}
	found := files{empty: volume.Emptiness(a.config.Data, appendOnly)}
	found.self, found.known, err = volume.Self(a.config.Data)
	if err != nil {
		a.log.Warn("the node table is left to the server", "error", err)
	}
	return found, nil
}

// supervise runs the server to its end, and says whether it is to be started again.
func (a *agent) supervise(ctx context.Context) (code int, again bool, err error) {
	tail := process.NewTail(a.output, tailLines)
	server, sampler, err := a.start(tail)
	if err != nil {
		return 1, false, err
	}
	// The server is looked at also after the context's end, until it is asked to stop.
	stopLooking := together(context.WithoutCancel(ctx), sampler.run,
		(&reserve{config: a.config, board: a.board, server: server}).run)
	defer stopLooking()
	select {
	case <-server.Done():
		stopLooking()
		if a.repair(server.Exit(), tail.Lines()) {
			return 0, true, nil
		}
		return a.failed(server.Exit(), tail.Lines()), false, nil
	case <-ctx.Done():
	}
	a.board.setPhase(probe.Stopping)
	a.awaitLog(server)
	stopLooking()
	return a.stop(server)
}

// together runs tasks until the returned function is called, which waits for
// their end.
func together(ctx context.Context, tasks ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, task := range tasks {
		group.Go(func() { task(ctx) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// stop has the server end.
func (a *agent) stop(server *process.Server) (code int, again bool, err error) {
	a.log.Info("stopping the server")
	if err := server.Signal(syscall.SIGTERM); err != nil {
		return 1, false, err
	}
	a.awaitEnd(server)
	exit := server.Exit()
	a.log.Info("the server has ended", "how", exit.String())
	a.board.stopped(protocol.Stop{At: time.Now(), Clean: exit.Code == 0, Note: exit.String()})
	return 0, false, nil
}

// repair does what lets a server that ended by itself be started again at
// once, in the same container, and says whether there is such a thing.
func (a *agent) repair(exit process.Exit, lines []string) bool {
	a.lacked = nil
	if a.refuse(lines) {
		return true
	}
	quote, lacks := lacksSpace(exit, lines)
	if !lacks {
		return false
	}
	a.log.Error("the server ended for want of space on its volume", "how", exit.String(), "quote", quote)
	a.board.stopped(protocol.Stop{At: time.Now(), Note: exit.String() + ": " + quote})
	a.noteWant(quote)
	return true
}

// awaitEnd waits for as long as the kubelet lets us. A server that cannot save,
// as on a full disk, refuses to end and does not try again by itself: it is asked
// again, and never made to end without its data. To be asked twice does no harm.
func (a *agent) awaitEnd(server *process.Server) {
	for began := time.Now(); ; {
		select {
		case <-server.Done():
			return
		case <-time.After(askEndEvery):
			err := server.Signal(syscall.SIGTERM)
			a.log.Warn("the server has not ended yet and was asked again", "after", time.Since(began).Round(time.Second), "error", err)
		}
	}
}

func (a *agent) start(output io.Writer) (*process.Server, *sampler, error) {
	seen, _ := a.board.look()
	a.board.mu.Lock()
	asked := start{noFailover: a.board.files.role() == protocol.RoleReplica, blank: !a.board.files.known, server: a.version}
	a.board.mu.Unlock()
	users, err := a.config.readUsers(seen.Replaced)
	if err != nil {
		return nil, nil, err
	}
	a.users = withFormer(users, a.refused, "")
	if err := writePrivately(a.config.aclCopy(), []byte(a.users)); err != nil {
		return nil, nil, err
	}
	operator, err := a.config.password(userOperator)
	if err != nil {
		return nil, nil, err
	}
	password, err := a.config.password(userReplication)
	if err != nil {
		return nil, nil, err
	}
	if err := a.config.writeConf(asked); err != nil {
		return nil, nil, err
	}
	_ = os.Remove(a.config.lastStopFile())
	server, err := process.Start(process.Command{
		Path: a.config.Program, Args: []string{a.config.confFile()}, Inherited: a.lock, Output: output,
	})
	if err != nil {
		return nil, nil, err
	}
	a.board.setPhase(probe.Up)
	a.log.Info("the server was started", "noFailover", asked.noFailover, "blank", asked.blank, "closed", seen.Replaced)
	return server, &sampler{
		config: a.config, board: a.board,
		usersAsked: users, usersGiven: a.users, password: operator, passwordGiven: password, closed: seen.Replaced, noFailover: asked.noFailover, joining: asked.blank,
	}, nil
}

// refuse notes the users because of whom the server did not start, and says
// whether it may be started without them. Who is off already is not the cause.
func (a *agent) refuse(lines []string) bool {
	users := refusedUsers(a.users, strings.Join(lines, "\n"))
	off := func(user string) bool { return slices.Contains(a.refused, user) }
	if len(users) == 0 || slices.ContainsFunc(users, off) {
		return false
	}
	a.log.Warn("the server did not start because of users' permissions; it is started with those users off", "users", users)
	a.refused = append(a.refused, users...)
	a.board.setRefused(a.refused)
	return true
}

// failed notes that the server ended by itself and returns the exit code that
// makes the kubelet restart the container.
func (a *agent) failed(exit process.Exit, lines []string) int {
	quote := exit.String() + ": " + strings.Join(lines, "\n")
	a.log.Error("the server ended by itself", "how", exit.String())
	a.board.stopped(protocol.Stop{At: time.Now(), Clean: exit.Code == 0, Note: quote})
	a.board.decide(probe.Stopped, guard.Verdict{Decision: protocol.DecisionServerFailed, Message: quote})
	leaveLastWord(quote)
	return exit.Code
}

// leaveLastWord writes where the kubelet looks for a last word, if it does.
func leaveLastWord(text string) {
	file, err := os.OpenFile(terminationLog, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, _ = file.WriteString(text)
	_ = file.Close()
}
