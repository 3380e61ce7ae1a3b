package valkey_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// memory is the bench of servers in memory.
type memory struct {
	cluster *valkeytest.Cluster
	nodes   []*valkeytest.Node
	places  int
}

func openMemory(*testing.T) bench {
	return &memory{cluster: valkeytest.New(valkeytest.Options{Seed: 7})}
}

func (m *memory) nextAddress() string {
	m.places++
	return fmt.Sprintf("10.0.0.%d:6379", m.places)
}

func (m *memory) add(_ *testing.T, count int) {
	for range count {
		m.nodes = append(m.nodes, m.cluster.Add(m.nextAddress()))
	}
}

func (m *memory) connect(t *testing.T, server int) link {
	t.Helper()
	conn, err := m.cluster.Connect(t.Context(), valkey.Target{Address: m.nodes[server].Address()})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func (m *memory) place(server int) (host string, port int) {
	address := netip.MustParseAddrPort(m.nodes[server].Address())
	return address.Addr().String(), int(address.Port())
}

func (m *memory) kill(_ *testing.T, server int) { m.nodes[server].Kill() }

func (m *memory) stop(_ *testing.T, server int) { m.nodes[server].Stop() }

func (m *memory) slowSync(_ *testing.T, server int) { m.nodes[server].SlowSync(10 * time.Second) }

func (m *memory) silence(_ *testing.T, server int) { m.nodes[server].Silence(true) }

func (m *memory) wake(_ *testing.T, server int) { m.nodes[server].Silence(false) }

func (m *memory) start(_ *testing.T, server int, how restart) {
	start := valkeytest.Start{}
	switch how {
	case same:
	case moved:
		start.Address = m.nextAddress()
	case emptied:
		start.Data = valkeytest.Emptied
	case blank:
		start.Data = valkeytest.Blank
	case barred:
		start.Barred = true
	case slowly:
		start.Loading = time.Minute
	}
	m.nodes[server].Start(start)
}

func (m *memory) write(t *testing.T, key string) {
	t.Helper()
	if err := m.cluster.Write(key, "value"); err != nil {
		t.Fatal(err)
	}
}

func (m *memory) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 400 {
		if holds() {
			return
		}
		m.cluster.Step()
	}
	t.Fatalf("never: %s", what)
}

func (m *memory) linger() { m.cluster.Advance(20 * time.Second) }
