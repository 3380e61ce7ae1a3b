package valkey

import (
	"context"
	"crypto/tls"
)

// Reader looks at one server.
type Reader interface {
	// View asks the server for all it knows, in one round trip.
	View(ctx context.Context) (View, error)
	// Close ends the connection. It may be called more than once.
	Close()
}

// Commander changes one server's place in its cluster. A nil error means that
// the server accepted the command, not that the cluster has learned of the change.
type Commander interface {
	// Meet makes the server greet another one. Host must be an IP address;
	// busPort 0 means port + 10000.
	Meet(ctx context.Context, host string, port, busPort int) error
	// AddSlots makes the server the owner of slots that have none: all of them or,
	// with an error, none. An empty set is no command at all. A replica accepts
	// as well, and then nobody serves them: the caller looks at the role first.
	AddSlots(ctx context.Context, slots Slots) error
	// Replicate makes the server, which must own no slots and as a primary hold
	// no keys, a replica of a primary that it already knows.
	Replicate(ctx context.Context, primary NodeID) error
	// Forget removes a node from this one server's table and keeps gossip from
	// bringing it back for 60 seconds.
	Forget(ctx context.Context, id NodeID) error
	// Failover asks a replica to take its primary's place. The promotion itself
	// comes later, or never: read it from the roles.
	Failover(ctx context.Context, mode FailoverMode) error
}

// Filer looks after one server's files.
type Filer interface {
	// RewriteLog begins to write the append-only file anew, beside the old one
	// until it is finished. A rewrite that is under way, or has to wait for
	// another child of the server, is as good.
	RewriteLog(ctx context.Context) error
}

// Adjuster changes a running server's settings, not its file.
type Adjuster interface {
	// ConfigSetAll gives the server settings, each as one argument (SettingArgument):
	// all of them or, with an error, none.
	ConfigSetAll(ctx context.Context, settings map[string]string) error
}

// Server is one connected server: to look at and to command.
type Server interface {
	Reader
	Commander
	Filer
	Adjuster
}

// Dialer connects to one server and proves who we are. The context bounds the
// connecting and nothing after it. Dial is one; valkeytest has another.
type Dialer func(ctx context.Context, target Target) (Server, error)

// Target says where a server listens and as whom to speak to it.
type Target struct {
	Address  string // host:port
	Username string // empty: the default user
	Password string
	TLS      *tls.Config // nil: no TLS
}

// String is the address alone: a target may be logged.
func (t Target) String() string { return t.Address }

// GoString is the same as String, so that no way of printing shows the password.
func (t Target) GoString() string { return t.Address }

// FailoverMode is how much a replica asks others before it becomes primary.
type FailoverMode string

const (
	// Graceful has the primary take no writes until the replica's offset is its own.
	// Where the replica was in sync nothing is lost. The server does not ask whether it
	// was: one that never was, of a primary without replicas, both started from a log
	// and having offset 0, takes over with whatever it has. The caller must ask.
	Graceful FailoverMode = ""
	// Force does not ask the primary but still needs the votes of a majority of
	// the slot-owning primaries.
	Force FailoverMode = "FORCE"
	// Takeover asks nobody. The caller must have proof that the primary is gone.
	Takeover FailoverMode = "TAKEOVER"
)

// Epochs changes configuration epochs.
type Epochs interface {
	// SetConfigEpoch gives a fresh server, alone in its table, its first epoch.
	SetConfigEpoch(ctx context.Context, epoch uint64) error
	// BumpEpoch raises the server's epoch above all it knows, asking nobody.
	BumpEpoch(ctx context.Context) error
}

// Configurer changes a running server's settings.
type Configurer interface {
	ConfigGet(ctx context.Context, name string) (value string, known bool, err error)
	ConfigSet(ctx context.Context, name, value string) error
	// ACLLoad makes the server read its ACL file again.
	ACLLoad(ctx context.Context) error
}

// Supervisor is what the agent beside a server needs of it.
type Supervisor interface {
	// Ping returns nil or what the server said or did instead of PONG.
	Ping(ctx context.Context) error
	// Shutdown ends the server. A server that ends as asked never answers: that
	// is the nil error.
	Shutdown(ctx context.Context, mode ShutdownMode) error
	// Raw sends any command and returns its answer as text.
	Raw(ctx context.Context, words ...string) (string, error)
}

// ShutdownMode says what a server does with its dataset before it ends.
type ShutdownMode string

// SaveFirst writes a dump even if no save point is configured, and refuses to
// end when that fails; NoSave never writes one.
const (
	SaveFirst ShutdownMode = "SAVE"
	NoSave    ShutdownMode = "NOSAVE"
)
