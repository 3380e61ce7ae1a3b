package cluster

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"valkey.io/valkey-operator/lab/internal/home"
)

func TestAMachineHasOneLab(t *testing.T) {
	t.Parallel()
	name := "@" + filepath.Base(t.TempDir()) + t.Name()
	f, err := claim(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	go answerClaims(l, home.Home{Root: "/here/it/is"})

	_, err = claim(t.Context(), name)
	if err == nil || !strings.Contains(err.Error(), "another lab runs on this machine (at /here/it/is)") {
		t.Errorf("a second lab must be refused by a sentence that names the first, got: %v", err)
	}

	l.Close()
	f, err = claim(t.Context(), name)
	if err != nil {
		t.Fatalf("the name must be free once its lab has ended: %v", err)
	}
	f.Close()
}

func TestATakenPortIsRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	_, err = openPortal(t.Context(), port)
	if err == nil || !strings.Contains(err.Error(), "in use: choose another with --port") {
		t.Errorf("want a sentence about the port, got: %v", err)
	}
}

func TestOneCommandChangesALabAtATime(t *testing.T) {
	t.Parallel()
	h := home.Home{Root: t.TempDir()}
	if err := h.Prepare(); err != nil {
		t.Fatal(err)
	}
	release, err := serialize(h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serialize(h); err == nil {
		t.Error("a second command must be refused while the first runs")
	}
	release()
	release, err = serialize(h)
	if err != nil {
		t.Fatalf("the next command must be let in: %v", err)
	}
	release()
}
