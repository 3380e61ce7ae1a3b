package apply

import (
	"errors"
	"testing"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

func TestSetConfig(t *testing.T) {
	t.Parallel()
	const address, unknown = "127.0.0.1:6379", "127.0.0.1:6380"
	for what, row := range map[string]struct {
		address  string
		settings map[string]string
		refused  bool
		failed   bool
		want     string // maxmemory afterwards
	}{
		"accepted":                {address: address, settings: map[string]string{"maxmemory": "1000", "appendfsync": "always"}, want: "1000"},
		"refused, and none kept":  {address: address, settings: map[string]string{"maxmemory": "1000", "maxmemry": "1"}, refused: true, failed: true, want: "0"},
		"nobody listens, no word": {address: unknown, settings: map[string]string{"maxmemory": "1000"}, failed: true, want: "0"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := valkeytest.New(valkeytest.Options{})
			servers.Add(address)
			hands := Applier{Dial: servers.Dial}
			err := hands.do(t.Context(), plan.SetConfig{To: plan.Server{Node: "prod-0-1", Address: row.address}, Settings: row.settings})
			var refusal *plan.Refusal
			refused := errors.As(err, &refusal)
			if refused != row.refused || (err != nil) != row.failed {
				t.Errorf("it gives %v", err)
			}
			if refused && (refusal.Reason != v1alpha1.ReasonConfigRefused || refusal.Message != "Unknown option or number of arguments for CONFIG SET - 'maxmemry'") {
				t.Errorf("it is refused because of %s: %s", refusal.Reason, refusal.Message)
			}
			maxmemoryIs(t, servers, address, row.want)
		})
	}
}

// maxmemoryIs checks what the server at the address has for maxmemory.
func maxmemoryIs(t *testing.T, servers *valkeytest.Cluster, address, want string) {
	t.Helper()
	conn, err := servers.Connect(t.Context(), valkey.Target{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, _, err := conn.ConfigGet(t.Context(), "maxmemory"); got != want || err != nil {
		t.Errorf("maxmemory is %q, want %q: %v", got, want, err)
	}
}
