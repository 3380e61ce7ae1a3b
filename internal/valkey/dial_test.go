package valkey

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// scripted listens and gives every command of a connection the same answer, or
// none at all when there is none.
func scripted(t *testing.T, answer string) Target {
	t.Helper()
	return answering(t, listen(t), answer)
}

// listen is closed when the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func answering(t *testing.T, listener net.Listener, answer string) Target {
	t.Helper()
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
	defer func() { _ = conn.Close() }()
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
	_ = first.Close()
	if _, err := dial(t.Context(), target.Address, &net.Dialer{}, nil); !errors.Is(err, errNoSecondConnection) {
		t.Errorf("the second dial: %v", err)
	}
}

func TestShutdownOfASilentServerIsNoSuccess(t *testing.T) {
	t.Parallel()
	listener := listen(t)
	go func() {
		// One answer, to the handshake, and then silence.
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write([]byte("+OK\r\n"))
		<-t.Context().Done()
	}()
	conn, err := Dial(t.Context(), Target{Address: listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := conn.Shutdown(ctx, SaveFirst); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that never ends: %v", err)
	}
}

func TestDialSpeaksTLS(t *testing.T) {
	t.Parallel()
	// The test server of net/http has a certificate for 127.0.0.1.
	source := httptest.NewTLSServer(http.NotFoundHandler())
	defer source.Close()
	listener := tls.NewListener(listen(t), &tls.Config{Certificates: source.TLS.Certificates})
	target := answering(t, listener, "+PONG\r\n")
	if conn, err := Dial(t.Context(), target); err == nil {
		conn.Close()
		t.Error("a server with TLS took a connection without")
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(source.Certificate())
	target.TLS = &tls.Config{RootCAs: trusted}
	conn, err := Dial(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Ping(t.Context()); err != nil {
		t.Error(err)
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
