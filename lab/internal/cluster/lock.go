package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"valkey.io/valkey-operator/lab/internal/home"
)

// lockName is an abstract socket of the machine: whoever listens on it is the
// machine's one running lab. It answers with its root directory. The kernel
// frees the name when the control plane's first process ends, however it ends.
const lockName = "@valkey-operator-lab"

// claim takes a name, or says which lab has it.
func claim(ctx context.Context, name string) (*os.File, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", name)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("another lab runs on this machine (%s): end it with `LAB=THERE lab down` first", holder(ctx, name))
	}
	if err != nil {
		return nil, err
	}
	return descriptor(l)
}

// descriptor is what hands a listener to another process; the listener itself
// is closed.
func descriptor(l net.Listener) (*os.File, error) {
	defer l.Close()
	f, ok := l.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("a %T has no descriptor", l)
	}
	return f.File()
}

func holder(ctx context.Context, name string) string {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", name)
	if err != nil {
		return "it does not answer"
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	b, err := io.ReadAll(c)
	if err != nil || len(b) == 0 {
		return "it does not say where"
	}
	return "at " + string(b)
}

// answerClaims tells whoever asks which lab holds the machine.
func answerClaims(l net.Listener, h home.Home) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, h.Root)
		c.Close()
	}
}

// openPortal listens where this machine reaches the API server.
func openPortal(ctx context.Context, port int) (*os.File, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d of 127.0.0.1 is in use: choose another with --port", port)
	}
	if err != nil {
		return nil, err
	}
	return descriptor(l)
}

// serialize keeps two commands from changing one lab at the same time. The
// lock ends with the process or by the returned function.
func serialize(h home.Home) (release func(), err error) {
	f, err := os.OpenFile(h.State("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errors.New("another lab command is changing this lab: wait for it")
	}
	return func() { f.Close() }, nil
}
