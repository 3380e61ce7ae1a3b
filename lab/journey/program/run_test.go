package program

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/journey/stories"
)

func TestEveryJourneyIsNamedAndTold(t *testing.T) {
	t.Parallel()
	name, seen := regexp.MustCompile(`^[a-z][a-z-]{2,29}$`), map[string]bool{}
	for _, j := range stories.All() {
		if seen[j.Name] {
			t.Errorf("two journeys are called %s", j.Name)
		}
		seen[j.Name] = true
		if !name.MatchString(j.Name) || j.Story == "" || j.Play == nil || j.Limit <= 0 {
			t.Errorf("journey %+v lacks a name, a story, a limit or a play", j)
		}
		if j.Tier != stories.Continuous && j.Tier != stories.Long {
			t.Errorf("%s has the tier %q", j.Name, j.Tier)
		}
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tier  string
		names []string
		want  string // of the error
	}{
		"a tier":                         {tier: "ci"},
		"names in the order given":       {tier: "ci", names: []string{"users", "pods-lost"}},
		"a name that there is not":       {names: []string{"nowhere"}, want: `no journey "nowhere"`},
		"a tier that there is not":       {tier: "cu", want: `no tier "cu"`},
		"a long journey by its own name": {tier: "ci", names: []string{"worker-lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, err := Select(c.tier, c.names)
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want %s", err, c.want)
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "":
				if diff := cmp.Diff(expected(c.tier, c.names), namesOf(chosen)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// expected are the names given, or all of a tier.
func expected(tier string, names []string) []string {
	if names != nil {
		return names
	}
	var all []string
	for _, j := range stories.All() {
		if string(j.Tier) == tier {
			all = append(all, j.Name)
		}
	}
	return all
}

func namesOf(journeys []stories.Journey) []string {
	var names []string
	for _, j := range journeys {
		names = append(names, j.Name)
	}
	return names
}

func TestSummaryEndsWithTheCounts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	failed := summary(&stage.World{Out: &b}, []result{{name: "a", took: time.Second}, {name: "b", failure: "it broke"}, {name: "c"}}, time.Minute)
	if failed != 1 || !strings.HasSuffix(b.String(), "\n2 passed, 1 failed\n") || !strings.Contains(b.String(), "it broke") {
		t.Errorf("%d failed, wrote %q", failed, b.String())
	}
}
