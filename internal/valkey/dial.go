package valkey

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	client "github.com/valkey-io/valkey-go"
)

const (
	// dialTimeout bounds connecting and authenticating when the caller's context
	// has no deadline: a server that needs longer for a handshake is of no use.
	dialTimeout = 5 * time.Second
	// bufferBytes is the size of each of a connection's two buffers. INFO and a
	// table of some tens of nodes take a few reads of it, and a hundred
	// connections cost under a megabyte.
	bufferBytes = 4096
	// ringScale makes room for 2^4 commands under way on one connection: more
	// than the three of a View.
	ringScale = 4
	// noPings keeps the client library from pinging on its own: negative switches it off.
	noPings = -1
	// commandLimit is the library's own bound for a command, far beyond any that
	// a caller's context sets: saving at a shutdown may take many minutes.
	commandLimit = time.Hour
)

// Conn is one connection to one server. It never connects again: once broken
// it stays broken, so that it cannot end at another server on the same address.
// It implements every port of this package.
type Conn struct {
	client client.Client
}

var (
	_ Server     = (*Conn)(nil)
	_ Epochs     = (*Conn)(nil)
	_ Configurer = (*Conn)(nil)
	_ Supervisor = (*Conn)(nil)
)

var errNoSecondConnection = errors.New("the connection is broken")

// Dial connects to the target and authenticates. The connecting ends at the
// context's deadline, or after five seconds without one.
func Dial(ctx context.Context, target Target) (*Conn, error) {
	timeout := dialTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	if err := ctx.Err(); err != nil || timeout <= 0 {
		return nil, fmt.Errorf("connecting to %s: %w", target, errors.Join(err, context.DeadlineExceeded))
	}
	opened, err := client.NewClient(client.ClientOption{
		InitAddress:        []string{target.Address},
		Username:           target.Username,
		Password:           target.Password,
		TLSConfig:          target.TLS,
		DialCtxFn:          dialOnce(ctx),
		Dialer:             net.Dialer{Timeout: timeout, KeepAlive: noPings},
		ConnWriteTimeout:   commandLimit,
		ForceSingleClient:  true,
		AlwaysRESP2:        true, // its texts come bare, those of RESP3 with a format prefix
		DisableCache:       true,
		DisableRetry:       true,
		ClientSetInfo:      client.DisableClientSetInfo,
		ReadBufferEachConn: bufferBytes, WriteBufferEachConn: bufferBytes,
		RingScaleEachConn: ringScale,
		PipelineMultiplex: -1, // one connection
	})
	if err != nil {
		if opened != nil {
			opened.Close()
		}
		return nil, fmt.Errorf("connecting to %s: %w", target, asReplyError(err))
	}
	return &Conn{client: opened}, nil
}

// DialServer is Dial in the form of a Dialer.
func DialServer(ctx context.Context, target Target) (Server, error) {
	conn, err := Dial(ctx, target)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// dialOnce dials within both the caller's context and the client's own, and
// refuses the client's attempts to connect again later.
func dialOnce(caller context.Context) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	var dialled atomic.Bool
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errNoSecondConnection
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := context.AfterFunc(caller, cancel)
		defer stop()
		if config == nil {
			return dialer.DialContext(ctx, "tcp", address)
		}
		withTLS := tls.Dialer{NetDialer: dialer, Config: config}
		return withTLS.DialContext(ctx, "tcp", address)
	}
}

// asReplyError turns the client library's error answers into ours.
func asReplyError(err error) error {
	if reply, ok := client.IsValkeyErr(err); ok {
		return NewReplyError(reply.Error())
	}
	return err
}

// Close ends the connection.
func (c *Conn) Close() { c.client.Close() }

// Raw sends any command and returns its answer as text. Answers that are no
// text (numbers apart) are an error.
func (c *Conn) Raw(ctx context.Context, words ...string) (string, error) {
	return text(c.send(ctx, words))
}

func (c *Conn) send(ctx context.Context, words []string) client.ValkeyResult {
	return c.client.Do(ctx, c.build(words))
}

func (c *Conn) build(words []string) client.Completed {
	return c.client.B().Arbitrary(words...).Build()
}

func text(result client.ValkeyResult) (string, error) {
	message, err := result.ToMessage()
	if err != nil {
		return "", asReplyError(err)
	}
	if message.IsInt64() {
		number, err := message.AsInt64()
		return strconv.FormatInt(number, 10), err
	}
	answer, err := message.ToString()
	return answer, asReplyError(err)
}

// do sends a command whose answer is of no interest unless it is an error.
func (c *Conn) do(ctx context.Context, words ...string) error {
	return asReplyError(c.send(ctx, words).Error())
}

// answers sends commands in one go. The error of each answer is its own.
func (c *Conn) answers(ctx context.Context, commands ...[]string) []answer {
	built := make([]client.Completed, len(commands))
	for i, words := range commands {
		built[i] = c.build(words)
	}
	answers := make([]answer, len(commands))
	for i, result := range c.client.DoMulti(ctx, built...) {
		answers[i].text, answers[i].err = text(result)
	}
	return answers
}

// pairs sends a command that answers a map, or a list that alternates names and values.
func (c *Conn) pairs(ctx context.Context, words ...string) (map[string]string, error) {
	values, err := c.send(ctx, words).AsStrMap()
	return values, asReplyError(err)
}
