package valkey

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// scripted listens and gives every command of a connection the same answer, or
// none at all when there is none.
func scripted(t *testing.T, answer string) Target {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, answer)
		}
	}()
	return Target{Address: listener.Addr().String()}
}

// serve answers once per line that begins a command: "*" and the number of its words.
func serve(conn net.Conn, answer string) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "*") {
			if _, err := conn.Write([]byte(answer)); err != nil {
				return
			}
		}
	}
}

func TestDialEndsInTime(t *testing.T) {
	t.Parallel()
	tests := map[string]func(context.Context) (context.Context, context.CancelFunc){
		"at the deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		},
		"at once when the context is over": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := end(t.Context())
			defer cancel()
			conn, err := Dial(ctx, scripted(t, ""))
			if err == nil || conn != nil || Answered(err) {
				t.Errorf("a server that never answers: %v", err)
			}
		})
	}
}

func TestDialTellsWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	target := scripted(t, "-WRONGPASS invalid username-password pair or user is disabled.\r\n")
	target.Username, target.Password = "_operator", "wrong"
	_, err := DialServer(t.Context(), target)
	if !IsNoAuth(err) {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestConnNeverConnectsAgain(t *testing.T) {
	t.Parallel()
	target := scripted(t, "+PONG\r\n")
	conn, err := Dial(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	dial := dialOnce(t.Context())
	first, err := dial(t.Context(), target.Address, &net.Dialer{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	if _, err := dial(t.Context(), target.Address, &net.Dialer{}, nil); !errors.Is(err, errNoSecondConnection) {
		t.Errorf("the second dial: %v", err)
	}
}

func TestPingWantsPong(t *testing.T) {
	t.Parallel()
	conn, err := Dial(t.Context(), scripted(t, "+OK\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("OK passes for PONG")
	}
	if err := conn.Shutdown(t.Context(), NoSave); err == nil {
		t.Error("a server that answered has ended")
	}
}
