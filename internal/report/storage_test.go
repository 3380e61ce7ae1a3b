package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

// widened is a settled cluster of more members, whose spec asks for 2Gi, and all of whose
// nodes were told.
func widened(members int) cluster.Input {
	in := settledCluster()
	in.State.Status.Formed = true
	in.Spec.Storage.Size = new(size("2Gi"))
	first := in.State.Members[0]
	in.State.Members = nil
	for node := range members {
		member := first
		member.Name, member.Node = name.Node("prod", 0, node), node
		record, claim := *first.Record, *first.Claim
		record.Spec.Storage.Size, record.Spec.Storage.ClaimName = new(size("2Gi")), name.Claim(member.Name)
		claim.Name, claim.Requested = name.Claim(member.Name), size("2Gi")
		member.Record, member.Claim = &record, &claim
		in.State.Members = append(in.State.Members, member)
	}
	return in
}

func troubled(member *state.Member, reason, message string) {
	member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{Phase: v1alpha1.StorageRetrying}
	member.Record.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionStorageReady, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	}}
}

func finished(member *state.Member) { member.Claim.Capacity = size("2Gi") }

func storageReady(in cluster.Input, given map[string]plan.Verdict, o plan.Outcome) string {
	status := Cluster(in, verdicts(given), o)
	told := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStorageReady)
	return fmt.Sprintf("%s %s: %s", told.Status, told.Reason, told.Message)
}

// Who reads the condition knows how many volumes are where, which ones are in
// trouble, and what to do next.
func TestPartOfAGrowthFails(t *testing.T) {
	t.Parallel()
	refused := &plan.Refusal{Reason: v1alpha1.ReasonQuotaExceeded, Message: "exceeded quota: small"}
	for what, row := range map[string]struct {
		edit    func(in *cluster.Input)
		plan    map[string]plan.Verdict
		outcome plan.Outcome
		want    string
	}{
		"all grow": {want: "False VolumeExpanding: growing from 1Gi to 2Gi: 0 of 4 volumes are done; valkey-prod-0-0-data 1Gi, valkey-prod-0-1-data 1Gi, valkey-prod-0-2-data 1Gi, valkey-prod-0-3-data 1Gi"},
		"one is infeasible, one has grown, one was left alone": {
			edit: func(in *cluster.Input) {
				finished(&in.State.Members[0])
				troubled(&in.State.Members[1], v1alpha1.ReasonExpansionInfeasible, "set another size")
				in.State.Members[3].Record.Spec.Storage.Size = new(size("1Gi"))
			},
			want: "False ExpansionInfeasible: 1 of 4 volumes (valkey-prod-0-1-data): set another size; 1 volumes that shall grow as well were left alone",
		},
		"the worst has the word": {
			edit: func(in *cluster.Input) {
				troubled(&in.State.Members[0], v1alpha1.ReasonExpansionStalled, "stalled")
				troubled(&in.State.Members[1], v1alpha1.ReasonExpansionRetrying, "again")
				troubled(&in.State.Members[2], v1alpha1.ReasonVolumeUnavailable, "gone")
				troubled(&in.State.Members[3], v1alpha1.ReasonExpansionStalled, "stalled")
			},
			want: "False VolumeUnavailable: 1 of 4 volumes (valkey-prod-0-2-data): gone",
		},
		"two are being repeated": {
			edit: func(in *cluster.Input) {
				troubled(&in.State.Members[1], v1alpha1.ReasonExpansionRetrying, "again")
				troubled(&in.State.Members[2], v1alpha1.ReasonExpansionRetrying, "again")
			},
			want: "False ExpansionRetrying: 2 of 4 volumes (valkey-prod-0-1-data, valkey-prod-0-2-data): again",
		},
		"a trial was refused": {
			outcome: plan.Outcome{{Rule: "sizesCurrent", Err: refused, At: plan.TryExpandClaim{To: size("2Gi")}}},
			want:    "False QuotaExceeded: volumes cannot grow to 2Gi: exceeded quota: small; no volume was touched",
		},
		"the growth is not possible": {
			plan: map[string]plan.Verdict{"growthPossible": {Hold: plan.Blocked, Reason: v1alpha1.ReasonLimitRangeExceeded, Note: "too large"}},
			want: "False LimitRangeExceeded: too large",
		},
		"the growth is not possible, and a volume is lost": {
			edit: func(in *cluster.Input) {
				troubled(&in.State.Members[2], v1alpha1.ReasonVolumeUnavailable, "gone")
			},
			plan: map[string]plan.Verdict{"growthPossible": {Hold: plan.Blocked, Reason: v1alpha1.ReasonLimitRangeExceeded, Note: "too large"}},
			want: "False VolumeUnavailable: 1 of 4 volumes (valkey-prod-0-2-data): gone",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := widened(4)
			if row.edit != nil {
				row.edit(&in)
			}
			if diff := cmp.Diff(row.want, storageReady(in, row.plan, row.outcome)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What volumes have is told as it is.
func TestSizesAreToldAsTheyAre(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct{ first, second, want string }{
		"as asked for":             {"1Gi", "1Gi", "all 2 volumes have 1Gi"},
		"written another way":      {"1Gi", "1024Mi", "all 2 volumes have 1Gi"},
		"more than was asked for":  {"2Gi", "2Gi", "all 2 volumes have 2Gi, more than the 1Gi asked for"},
		"different, and all more":  {"2Gi", "3Gi", "all 2 volumes have 2Gi to 3Gi, more than the 1Gi asked for"},
		"different, and some more": {"1Gi", "3Gi", "all 2 volumes have 1Gi to 3Gi, some more than the 1Gi asked for"},
	} {
		in := settledCluster()
		in.State.Members[0].Claim.Capacity, in.State.Members[1].Claim.Capacity = size(row.first), size(row.second)
		if got := storageReady(in, nil, nil); got != "True VolumesBound: "+row.want {
			t.Errorf("%s: it says %q", what, got)
		}
	}
}

// Thousands of volumes that grow, or that are all in trouble, do not make an object
// larger than the API server and its watchers like.
func TestTheStatusOfThousandsIsBounded(t *testing.T) {
	t.Parallel()
	const most = 100 << 10
	for what, edit := range map[string]func(in *cluster.Input){
		"they grow": func(*cluster.Input) {},
		"they are in trouble": func(in *cluster.Input) {
			for i := range in.State.Members {
				troubled(&in.State.Members[i], v1alpha1.ReasonExpansionStalled, strings.Repeat("ö", 2000))
			}
		},
		"they have no volumes yet": func(in *cluster.Input) {
			for i := range in.State.Members {
				in.State.Members[i].Claim.Capacity = size("0")
				in.State.Members[i].Record.Status.Storage = &v1alpha1.NodeStorageStatus{Phase: v1alpha1.StorageUnbound}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := widened(3000)
			edit(&in)
			status := Cluster(in, verdicts(nil), nil)
			body, err := json.Marshal(status)
			if err != nil || len(body) > most {
				t.Errorf("it takes %d bytes: %v", len(body), err)
			}
			if listed := len(status.Storage.Volumes); listed == 0 || listed > mostVolumes {
				t.Errorf("%d volumes are listed", listed)
			}
		})
	}
}

// Of many volumes, those that need a person are listed first.
func TestTroubleIsListedFirst(t *testing.T) {
	t.Parallel()
	in := widened(300)
	troubled(&in.State.Members[250], v1alpha1.ReasonVolumeUnavailable, "gone")
	if listed := Cluster(in, verdicts(nil), nil).Storage.Volumes; listed[0].Node != "prod-0-250" {
		t.Errorf("the first is %+v", listed[0])
	}
}

func TestCeiling(t *testing.T) {
	t.Parallel()
	infeasible := func(member *state.Member, requested string, since time.Time) {
		member.Claim.Requested, member.Claim.ResizeStatus = size(requested), string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
		if !since.IsZero() {
			member.Claim.Conditions = []state.ClaimCondition{{
				Type: string(corev1.PersistentVolumeClaimControllerResizeError), Status: corev1.ConditionTrue, Since: since,
			}}
		}
	}
	before := func(in *cluster.Input, at string, since time.Time) {
		in.State.Status.Storage = &v1alpha1.StorageStatus{Ceiling: &v1alpha1.StorageCeiling{Size: size(at), Since: metav1.NewTime(since)}}
	}
	hourAgo := noon.Add(-time.Hour)
	for what, row := range map[string]struct {
		edit func(in *cluster.Input)
		want string
	}{
		"nothing is infeasible":                {func(*cluster.Input) {}, "none"},
		"a size is infeasible":                 {func(in *cluster.Input) { infeasible(&in.State.Members[0], "10Ti", hourAgo) }, "10Ti -1h0m0s"},
		"it is not told since when":            {func(in *cluster.Input) { infeasible(&in.State.Members[0], "10Ti", time.Time{}) }, "10Ti 0s"},
		"it was infeasible, and was not asked": {func(in *cluster.Input) { before(in, "10Ti", hourAgo) }, "10Ti -1h0m0s"},
		"it still is": {func(in *cluster.Input) {
			before(in, "10Ti", hourAgo)
			infeasible(&in.State.Members[0], "10Ti", time.Time{})
		}, "10Ti -1h0m0s"},
		"it is again": {func(in *cluster.Input) {
			before(in, "10Ti", hourAgo)
			infeasible(&in.State.Members[0], "10Ti", noon.Add(-time.Minute))
		}, "10Ti -1m0s"},
		"a larger one is as well": {func(in *cluster.Input) {
			before(in, "10Ti", hourAgo)
			infeasible(&in.State.Members[0], "20Ti", noon)
		}, "10Ti -1h0m0s"},
		"a smaller one is as well": {func(in *cluster.Input) {
			before(in, "10Ti", hourAgo)
			infeasible(&in.State.Members[0], "5Ti", noon)
		}, "5Ti 0s"},
		"some have it after all": {func(in *cluster.Input) { before(in, "2Gi", hourAgo); finished(&in.State.Members[0]) }, "2Gi -1h0m0s"},
		"all have it after all": {func(in *cluster.Input) {
			before(in, "2Gi", hourAgo)
			for i := range in.State.Members {
				finished(&in.State.Members[i])
			}
		}, "none"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := widened(3)
			row.edit(&in)
			got := "none"
			if found := Cluster(in, verdicts(nil), nil).Storage.Ceiling; found != nil {
				got = fmt.Sprint(found.Size.String(), " ", found.Since.Sub(noon))
			}
			if got != row.want {
				t.Errorf("it is %s, want %s", got, row.want)
			}
		})
	}
}

// A growth has begun when its first volume's node was told, not when it is
// wished for: what is refused before has never begun.
func TestWhenAGrowthBegins(t *testing.T) {
	t.Parallel()
	tells := map[string]plan.Verdict{"sizesCurrent": {
		Reason: v1alpha1.ReasonVolumeExpanding, Trials: []plan.Action{plan.TryExpandClaim{}}, Actions: []plan.Action{plan.EnsureNode{Node: "prod-0-0"}},
	}}
	done := plan.Outcome{{Rule: "sizesCurrent", Done: 1}}
	earlier := func(in *cluster.Input) {
		in.State.Status.Storage = &v1alpha1.StorageStatus{ExpandingSince: new(metav1.NewTime(noon.Add(-time.Hour)))}
	}
	unasked := func(in *cluster.Input) {
		for i := range in.State.Members {
			in.State.Members[i].Record.Spec.Storage.Size = new(size("1Gi"))
		}
	}
	for what, row := range map[string]struct {
		edit    func(in *cluster.Input)
		plan    map[string]plan.Verdict
		outcome plan.Outcome
		want    string
	}{
		"nobody was told yet":                  {unasked, nil, nil, "never"},
		"the first is told":                    {unasked, tells, done, "0s"},
		"the first could not be told":          {unasked, tells, plan.Outcome{{Rule: "sizesCurrent", Err: &plan.Refusal{Reason: "no"}}}, "never"},
		"the status was lost":                  {func(*cluster.Input) {}, nil, nil, "0s"},
		"it goes on":                           {earlier, nil, nil, "-1h0m0s"},
		"another size begins while one is had": {func(in *cluster.Input) { earlier(in); unasked(in) }, tells, done, "0s"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := widened(3)
			row.edit(&in)
			got := "never"
			if since := Cluster(in, verdicts(row.plan), row.outcome).Storage.ExpandingSince; since != nil {
				got = since.Sub(noon).String()
			}
			if got != row.want {
				t.Errorf("it began %s, want %s", got, row.want)
			}
		})
	}
}
