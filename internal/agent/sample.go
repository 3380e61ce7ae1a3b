package agent

import (
	"context"
	"net"
	"strconv"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

const (
	// eager is the time between looks at a server that is not ready: what is
	// waited for must be seen soon.
	eager = 100 * time.Millisecond
	// calm is the time between looks at a ready server.
	calm = time.Second
	// lookTime bounds one look. A server that needs longer is asked again.
	lookTime = 2 * time.Second
	// tendEvery is the time between looks at the mounted files.
	tendEvery = 2 * time.Second
	// noFailoverTime bounds how long a member that was a replica leaves the
	// shard to a primary that may still come back with newer data.
	noFailoverTime = time.Minute
)

// sampler looks at the running server again and again, and tends to it.
type sampler struct {
	config Config
	board  *board
	conn   *valkey.Conn

	usersAsked      string // the users that were to be given, as text
	usersGiven      string // the users the server has, as text
	password        string // the operator's that the server took last
	passwordGiven   string // the replication password the server has
	closed          bool   // the server admits the operator alone
	joining         bool   // the server started blank and has a short node timeout
	noFailover      bool   // the server was told not to stand for election
	noFailoverSince time.Time
	tendedAt        time.Time
	keptAt          time.Time // when the node table was compared with its copy last
	rewriteAt       time.Time // when a rewrite was asked for last
	lastTrouble     string
}

// run samples until the context ends.
func (s *sampler) run(ctx context.Context) {
	defer s.hangUp()
	for {
		s.sample(ctx)
		wait := eager
		if seen, _ := s.board.look(); seen.WasReady {
			wait = calm
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (s *sampler) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	view, err := s.view(ctx)
	switch now := time.Now(); {
	case err == nil:
		s.tend(ctx, view, now)
		s.board.answered(now, &view)
		s.trouble("", nil)
	case valkey.Answered(err):
		s.board.answered(now, nil)
		s.trouble("the server refuses to be looked at", err)
	default:
		s.hangUp()
		s.board.silent(now)
	}
}

func (s *sampler) view(ctx context.Context) (valkey.View, error) {
	if s.conn == nil {
		conn, err := s.dial(ctx)
		if err != nil {
			return valkey.View{}, err
		}
		s.conn = conn
	}
	return s.conn.View(ctx)
}

func (s *sampler) dial(ctx context.Context) (*valkey.Conn, error) {
	password, err := s.config.password(userOperator)
	if err != nil {
		s.trouble("the server cannot be looked at", err)
		return nil, err
	}
	conn, err := s.dialAs(ctx, password)
	if valkey.IsNoAuth(err) && s.password != password {
		// It is newer than the server's users: those are given over this very connection.
		return s.dialAs(ctx, s.password)
	}
	if err == nil {
		s.password = password
	}
	return conn, err
}

func (s *sampler) dialAs(ctx context.Context, password string) (*valkey.Conn, error) {
	return valkey.Dial(ctx, valkey.Target{
		Address:  net.JoinHostPort(s.config.loopback(), strconv.Itoa(serverPort)),
		Username: userOperator,
		Password: password,
	})
}

func (s *sampler) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// trouble logs what stands in the way, once until it changes.
func (s *sampler) trouble(what string, err error) {
	text := what
	if err != nil {
		text += ": " + err.Error()
	}
	if text != s.lastTrouble && err != nil {
		s.board.log.Warn(what, "error", err)
	}
	s.lastTrouble = text
}

// tend does what the running server needs: elections allowed again, doors
// opened, users and passwords kept up to date, a log rewritten.
func (s *sampler) tend(ctx context.Context, view valkey.View, now time.Time) {
	s.openDoors(view)
	s.joined(ctx, view)
	s.allowFailover(ctx, view, now)
	s.rewrite(ctx, view, now)
	s.keepTable(now)
	if now.Sub(s.tendedAt) < tendEvery {
		return
	}
	s.tendedAt = now
	s.giveUsers(ctx)
	s.givePassword(ctx)
}

// openDoors ends the time behind closed doors once the server knows that it is
// not the primary any more.
func (s *sampler) openDoors(view valkey.View) {
	if !s.closed || !knowsReplaced(view) {
		return
	}
	s.closed = false
	s.tendedAt = time.Time{}
	s.board.setReplaced(false)
	s.board.log.Info("the server has learned that it was replaced", "role", view.Info.Role)
}

// knowsReplaced is true for a replica, and for a primary that owns nothing any more.
func knowsReplaced(view valkey.View) bool {
	if view.Info.Role == valkey.RoleReplica {
		return true
	}
	myself, known := view.Myself()
	return known && myself.Slots.IsEmpty()
}

// allowFailover lets a member that was a replica stand for election again, once
// it has its primary's data or the bound is over. The time counts from the
// first look that finds the data loaded.
func (s *sampler) allowFailover(ctx context.Context, view valkey.View, now time.Time) {
	if !s.noFailover || view.Info.Loading != nil {
		return
	}
	if s.noFailoverSince.IsZero() {
		s.noFailoverSince = now
	}
	waited := now.Sub(s.noFailoverSince)
	if !mayStand(view, waited) {
		return
	}
	if err := s.conn.ConfigSet(ctx, "cluster-replica-no-failover", "no"); err != nil {
		s.board.log.Warn("elections could not be allowed again", "error", err)
		return
	}
	s.noFailover = false
	s.board.log.Info("the server may stand for election again", "after", waited.Round(time.Second))
}

// mayStand is true for a replica that has its primary's data and sees it alive,
// for one that has waited long enough, and for one that is no replica any more.
//
// A primary that was marked as failed keeps the mark for a while after its return:
// a replica that may stand for election then takes its place at once, together with
// the writes that the primary has acknowledged and not sent yet.
func mayStand(view valkey.View, waited time.Duration) bool {
	link := view.Info.Replication.Primary
	if link == nil || waited >= noFailoverTime {
		return true
	}
	return link.InSync() && seesPrimaryAlive(view)
}

func seesPrimaryAlive(view valkey.View) bool {
	myself, _ := view.Myself()
	primary, known := view.Table.ByID(myself.PrimaryID)
	return known && !primary.Flags.Failed && !primary.Flags.Suspected
}

// giveUsers makes the server read the users again when their file has changed.
// Those that it refuses stay as they were.
func (s *sampler) giveUsers(ctx context.Context) {
	asked, err := s.config.readUsers(s.closed)
	if err != nil || asked == s.usersAsked {
		return
	}
	given, refused := asked, []string(nil)
	err = s.loadUsers(ctx, given)
	if err != nil {
		refused = refusedUsers(given, err.Error())
	}
	if len(refused) > 0 {
		s.board.log.Warn("the server refuses users, which stay as they were", "users", refused, "error", err)
		given = withFormer(asked, refused, s.usersGiven)
		err = s.loadUsers(ctx, given)
	}
	if err != nil {
		s.board.log.Warn("the users could not be renewed", "error", err)
		return
	}
	s.usersAsked, s.usersGiven = asked, given
	s.board.setRefused(refused)
	s.board.log.Info("the users were renewed", "closed", s.closed)
}

func (s *sampler) loadUsers(ctx context.Context, text string) error {
	if err := writePrivately(s.config.aclCopy(), []byte(text)); err != nil {
		return err
	}
	return s.conn.ACLLoad(ctx)
}

// givePassword tells the server a new password to follow its primary with.
func (s *sampler) givePassword(ctx context.Context) {
	password, err := s.config.password(userReplication)
	if err != nil || password == s.passwordGiven {
		return
	}
	if err := s.conn.ConfigSet(ctx, "primaryauth", password); err != nil {
		s.board.log.Warn("the replication password could not be renewed", "error", err)
		return
	}
	s.passwordGiven = password
	s.board.log.Info("the replication password was renewed")
}
