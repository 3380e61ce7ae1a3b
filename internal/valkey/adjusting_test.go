package valkey_test

import (
	"testing"

	"valkey.io/valkey-operator/internal/valkey"
)

// adjusting is what any server promises of its settings.
var adjusting = map[string]func(rig){
	"settings are changed together": func(r rig) {
		r.add(r.T, 1)
		server := r.server(0)
		defer server.Close()
		r.adjust(server, map[string]string{"maxmemory-policy": "allkeys-lru", "slowlog-log-slower-than": "300"})
		r.adjust(server, nil)
		r.adjust(server, map[string]string{"maxmemory-policy": "noeviction"})
	},
	"one setting that is refused keeps all others as they were": func(r rig) {
		r.add(r.T, 1)
		server := r.server(0)
		defer server.Close()
		r.adjust(server, map[string]string{"slowlog-log-slower-than": "300"})
		for name, settings := range map[string]map[string]string{
			"an unknown setting":      {"slowlog-log-slower-than": "7", "maxmemry": "1"},
			"a bad value":             {"slowlog-log-slower-than": "7", "maxmemory-policy": "least-loved"},
			"one for its start alone": {"slowlog-log-slower-than": "7", "databases": "4"},
		} {
			if err := server.ConfigSetAll(r.ctx(), settings); !valkey.IsSettingRefusal(err) {
				r.Errorf("%s: %v", name, err)
			}
			if value, _, err := server.ConfigGet(r.ctx(), "slowlog-log-slower-than"); err != nil || value != "300" {
				r.Errorf("%s: refused in part: %q, %v", name, value, err)
			}
		}
	},
}

func (r rig) adjust(server link, settings map[string]string) {
	r.Helper()
	if err := server.ConfigSetAll(r.ctx(), settings); err != nil {
		r.Errorf("%v: %v", settings, err)
	}
	for setting, want := range settings {
		got, known, err := server.ConfigGet(r.ctx(), setting)
		if got != want || !known || err != nil {
			r.Errorf("%s is %q, %t, %v", setting, got, known, err)
		}
	}
}

func TestWhatIsNoRefusalOfASetting(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, valkey.NewReplyError("LOADING Valkey is loading"), valkey.NewReplyError("NOPERM no rights to run 'config|set'"), t.Context().Err()} {
		if valkey.IsSettingRefusal(err) {
			t.Errorf("%v", err)
		}
	}
}
