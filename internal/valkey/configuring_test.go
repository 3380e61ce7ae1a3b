package valkey_test

import (
	"errors"

	"valkey.io/valkey-operator/internal/valkey"
)

// configuring is what a running server says to new settings.
var configuring = map[string]func(rig){
	"a setting that no server has": func(r rig) {
		r.add(r.T, 1)
		r.answers("nonesuch", "1", "Unknown option or number of arguments for CONFIG SET - 'nonesuch'")
		if value, known := r.setting("nonesuch"); known {
			r.Errorf("it has the value %q", value)
		}
	},
	"a setting that is read at the start alone": func(r rig) {
		r.add(r.T, 1)
		for _, name := range []string{"databases", "cluster-enabled", "tcp-backlog"} {
			before, _ := r.setting(name)
			r.answers(name, before, "CONFIG SET failed (possibly related to argument '"+name+"') - can't set immutable config")
		}
	},
	"a value of the wrong kind": func(r rig) {
		r.add(r.T, 1)
		for name, c := range map[string]struct{ value, refusal string }{
			"maxmemory":                   {"much", "argument must be a memory value"},
			"appendonly":                  {"maybe", "argument must be 'yes' or 'no'"},
			"appendfsync":                 {"sometimes", "argument(s) must be one of the following: everysec, always, no"},
			"cluster-node-timeout":        {"-1", "argument must be between 0 and 9223372036854775807 inclusive"},
			"slowlog-log-slower-than":     {"a while", "argument couldn't be parsed into an integer"},
			"cluster-replica-no-failover": {"1", "argument must be 'yes' or 'no'"},
		} {
			before, _ := r.setting(name)
			r.answers(name, c.value, "CONFIG SET failed (possibly related to argument '"+name+"') - "+c.refusal)
			if after, known := r.setting(name); !known || after != before {
				r.Errorf("%s was %q and is %q after a refusal", name, before, after)
			}
		}
	},
	"memory is told in bytes": func(r rig) {
		r.add(r.T, 1)
		r.answers("maxmemory", "100mb", "")
		if value, _ := r.setting("maxmemory"); value != "104857600" {
			r.Errorf("100mb are %s", value)
		}
	},
	"a new process, and only that, has a new run id and its first settings": func(r rig) {
		r.add(r.T, 1)
		first := r.view(0).Info.RunID
		r.answers("maxmemory", "1mb", "")
		if again := r.view(0).Info.RunID; again != first || first == "" {
			r.Errorf("the run id was %q and is %q", first, again)
		}
		r.kill(r.T, 0)
		r.start(r.T, 0, same)
		if after := r.view(0).Info.RunID; after == first || after == "" {
			r.Errorf("the run id was %q and is %q after a restart", first, after)
		}
		if value, _ := r.setting("maxmemory"); value != "0" {
			r.Errorf("maxmemory is %s after a restart", value)
		}
	},
}

// answers gives server 0 a setting, and compares its refusal, or none.
func (r rig) answers(name, value, refusal string) {
	r.Helper()
	err := r.try(0, func(l link) error { return l.ConfigSet(r.ctx(), name, value) })
	var reply *valkey.ReplyError
	switch {
	case refusal == "":
		if err != nil {
			r.Errorf("%s %s: %v", name, value, err)
		}
	case !errors.As(err, &reply) || reply.Message != refusal:
		r.Errorf("%s %s: got %v, want %s", name, value, err, refusal)
	}
}

func (r rig) setting(name string) (value string, known bool) {
	r.Helper()
	r.do(0, func(l link) (err error) {
		value, known, err = l.ConfigGet(r.ctx(), name)
		return err
	})
	return value, known
}
