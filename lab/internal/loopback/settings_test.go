package loopback

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func pool(t *testing.T, settings string) Pool {
	t.Helper()
	p := Pool{Dir: t.TempDir()}
	set(t, p, settings)
	return p
}

func set(t *testing.T, p Pool, settings string) {
	t.Helper()
	if err := p.Set([]byte(settings)); err != nil {
		t.Fatal(err)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct{ settings, want string }{
		"a field that does not exist":     {`{"capcity": "1Gi"}`, "capcity"},
		"no JSON":                         {`capacity: 1Gi`, "pool.json"},
		"no size":                         {`{"capacity": "large"}`, "quantities"},
		"a size of nothing":               {`{"pools": {"p": {"capacity": "0"}}}`, "capacity must be more than nothing"},
		"a negative unit":                 {`{"roundUp": "-1Mi"}`, "roundUp must be more than nothing"},
		"no duration":                     {`{"expandDelay": "soon"}`, "soon"},
		"no owner":                        {`{"rootOwner": "root"}`, "UID:GID"},
		"a rate without a period":         {`{"modificationsPerPeriod": {"n": 1}}`, "period"},
		"a code that gRPC does not have":  {`{"faults": {"NodeExpandVolume": {"code": "EXHAUSTED"}}}`, "EXHAUSTED"},
		"a fault that does nothing":       {`{"faults": {"NodeExpandVolume": {}}}`, "a code or a delay"},
		"a fault acted out less than nil": {`{"faults": {"NodeExpandVolume": [{"code": "Internal", "times": -1}]}}`, "negative"},
		"a delay that is over already":    {`{"faults": {"NodeExpandVolume": {"delay": "-1s"}}}`, "negative"},
		"a fault's field misspelt":        {`{"faults": {"NodeExpandVolume": {"code": "Internal", "time": 2}}}`, "time"},
		"a method that CSI does not have": {`{"faults": {"NodeExpand": {"code": "Internal"}}}`, "NodeExpand"},
		"statistics as they are":          {`{"stats": [{"match": "a"}]}`, "missing, capacity or used"},
		"less than no room left":          {`{"fill": [{"leave": "-1Mi"}]}`, "less than nothing"},
		"two settings":                    {`{} {"capacity": "2Gi"}`, "more than one"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			p := pool(t, `{"capacity": "1Gi"}`)
			if err := p.Set([]byte(c.settings)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Set = %v, want an error with %q", err, c.want)
			}
			if s, _, err := p.settings(); err != nil || s.Capacity.String() != "1Gi" {
				t.Errorf("the settings before must stay in force: %+v, %v", s, err)
			}
		})
	}
}

func TestLimitsOfAVolume(t *testing.T) {
	t.Parallel()
	const settings = `{"capacity": "10Gi", "roundUp": "1Gi", "pools": {"small": {"capacity": "2Gi"}}}`
	for sentence, c := range map[string]struct {
		settings  string
		class     map[string]string
		pool      string
		wantLimit Limits
	}{
		"without settings the defaults hold": {`{}`, nil, "", limits(t, `{"capacity":"24Gi","maxVolume":"8Gi","roundUp":"1Mi","expandDelay":"0s"}`)},
		"settings come before defaults":      {settings, nil, "", limits(t, `{"capacity":"10Gi","maxVolume":"8Gi","roundUp":"1Gi","expandDelay":"0s"}`)},
		"a class comes before settings": {
			settings,
			map[string]string{"capacity": "512Mi", "offlineOnly": "true", "modificationsPerPeriod": "2/6h", "rootOwner": "7:8"},
			"",
			limits(t, `{"capacity":"512Mi","maxVolume":"8Gi","roundUp":"1Gi","expandDelay":"0s","offlineOnly":true,"modificationsPerPeriod":{"n":2,"period":"6h"},"rootOwner":"7:8"}`),
		},
		"a pool's settings come before its class": {
			settings,
			map[string]string{"capacity": "512Mi"},
			"small",
			limits(t, `{"capacity":"2Gi","maxVolume":"8Gi","roundUp":"1Gi","expandDelay":"0s"}`),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			s, err := parseSettings([]byte(c.settings))
			if err != nil {
				t.Fatal(err)
			}
			class, err := classLimits(c.class)
			if err != nil {
				t.Fatal(err)
			}
			got := s.limits(volume{Pool: c.pool, Limits: class})
			if diff := cmp.Diff(asJSON(t, c.wantLimit), asJSON(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// asJSON makes limits comparable: a quantity has more than one form.
func asJSON(t *testing.T, l Limits) string {
	t.Helper()
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func limits(t *testing.T, text string) Limits {
	t.Helper()
	var l Limits
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWrongClassParametersAreRefused(t *testing.T) {
	t.Parallel()
	for _, parameters := range []map[string]string{
		{"offlineOnly": "perhaps"},
		{"modificationsPerPeriod": "often"},
		{"modificationsPerPeriod": "1"},
		{"capacity": "large"},
		{"rootOwner": "me"},
		{"expandDelay": "1"},
	} {
		if l, err := classLimits(parameters); err == nil {
			t.Errorf("%v must be refused, gave %+v", parameters, l)
		}
	}
}

func TestDescribeSaysWhatIsInForce(t *testing.T) {
	t.Parallel()
	p := pool(t, `{"maxVolume": "1Gi", "expandDelay": "90s"}`)
	b, err := p.Describe()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSettings(b)
	if err != nil {
		t.Fatalf("what is described can be set again: %v", err)
	}
	if s.MaxVolume.String() != "1Gi" || s.Capacity.String() != "24Gi" || s.ExpandDelay.Duration != 90*time.Second {
		t.Errorf("described %s", b)
	}
}
