package agent

import (
	"context"
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

	asking   time.Time    // when the shard was asked first about this start
	damage   guard.Damage // what is wrong with the files
	restored bool         // the node table is a copy
	released bool         // the member may start without its data

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
		a.began, a.cleaned, a.asking, a.released = time.Now(), false, time.Time{}, false
	}
}

// supervise runs the server to its end, and says whether it is to be started again.
func (a *agent) supervise(ctx context.Context) (code int, again bool, err error) {
	_, logEnd, _ := volume.LogEnd(a.config.Data)
	tail := process.NewTail(&cutWatch{next: a.output, size: logEnd, tell: a.board.setLogCut}, tailLines)
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
	told := time.Now()
	a.board.setPhase(probe.Leaving)
	note := a.leave(ctx, server)
	a.board.setPhase(probe.Stopping)
	a.awaitLog(server)
	stopLooking()
	return a.stop(server, departed{told, note})
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

// departed is when a member was told to stop, and what has become of its slots.
type departed struct {
	told time.Time
	note string
}

// stop has the server end.
func (a *agent) stop(server *process.Server, left departed) (code int, again bool, err error) {
	a.log.Info("stopping the server")
	if err := server.Signal(syscall.SIGTERM); err != nil {
		return 1, false, err
	}
	a.awaitEnd(server)
	exit := server.Exit()
	how := exit.String()
	if left.note != "" {
		how += "; " + left.note
	}
	took := time.Since(left.told)
	a.log.Info("the server has ended", "how", how, "after", took.Round(time.Millisecond))
	a.board.stopped(protocol.Stop{At: time.Now(), Clean: exit.Code == 0, Note: how, TookMillis: took.Milliseconds()})
	return 0, false, nil
}

// repair does what lets a server that ended by itself be started again at
// once, in the same container, and says whether there is such a thing.
func (a *agent) repair(exit process.Exit, lines []string) bool {
	a.lacked = nil
	if a.refuse(lines) {
		return true
	}
	if a.noteDamage(exit, lines) {
		a.board.stopped(protocol.Stop{At: time.Now(), Note: exit.String() + ": " + a.damage.Table + a.damage.Data})
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
