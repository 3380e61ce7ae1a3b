package cluster

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// row is a rule asked about an input that was edited.
type row struct {
	spec v1alpha1.ValkeyClusterSpec
	edit func(*Input)
	want []string
}

// judge asks a rule about edited inputs. The servers of their benches are
// blank: these rules are about objects.
func judge(t *testing.T, rule func(Input) plan.Verdict, rows map[string]row) {
	t.Helper()
	for what, r := range rows {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if r.spec.Shards == 0 {
				r.spec = persistent(1, 1)
			}
			b := freshBench(r.spec, 1)
			in := b.input()
			if r.edit != nil {
				r.edit(&in)
			}
			verdict := rule(in)
			noted(t, verdict)
			if diff := cmp.Diff(r.want, b.tell(verdict)); diff != "" {
				t.Errorf("(-want +got):\n%s\nnote: %s", diff, verdict.Note)
			}
		})
	}
}

func unbudgeted(in *Input) { in.Spec.PodDisruptionBudget.Mode = v1alpha1.DisruptionDisabled }

func TestNamesFree(t *testing.T) {
	t.Parallel()
	taken := []string{"blocked NameTaken"}
	judge(t, namesFree, map[string]row{
		"all objects are ours": {want: []string{"settled"}},
		"a Service is somebody else's": {
			edit: func(in *Input) { in.State.Objects["Service/valkey-prod"] = state.Object{Foreign: true} },
			want: taken,
		},
		"a Service goes with an earlier cluster of this name": {
			edit: func(in *Input) {
				in.State.Objects["Service/valkey-prod"] = state.Object{Foreign: true, Earlier: true}
			},
			want: []string{"wait Forming"},
		},
		"a ValkeyNode is somebody else's": {edit: func(in *Input) { in.State.Members[0].Record.Foreign = true }, want: taken},
		"a budget of the user's own, where none of ours is wanted": {
			edit: func(in *Input) {
				unbudgeted(in)
				in.State.Objects["PodDisruptionBudget/valkey-prod"] = state.Object{Foreign: true}
			},
			want: []string{"settled"},
		},
		"a budget is somebody else's": {
			edit: func(in *Input) {
				in.State.Objects["PodDisruptionBudget/valkey-prod"] = state.Object{Foreign: true}
			},
			want: taken,
		},
		"nothing exists yet": {edit: func(in *Input) { in.State.Objects, in.State.Members = nil, nil }, want: []string{"settled"}},
	})
}

func TestIdentityRecorded(t *testing.T) {
	t.Parallel()
	lost := func(in *Input) { in.State.Status.ClusterID = "" }
	none := func(in *Input) {
		lost(in)
		for i := range in.State.Members {
			in.State.Members[i].Record = nil
		}
	}
	kept := func(edit func(*state.Claim)) func(*Input) {
		return func(in *Input) {
			none(in)
			edit(&in.State.Claims[1])
		}
	}
	judge(t, identityRecorded, map[string]row{
		"it is":                                            {want: []string{"settled"}},
		"a new cluster gets a fresh one":                   {edit: func(in *Input) { none(in); in.State.Claims = nil }, want: []string{"settled Forming", "give cluster prod the identity fresh"}},
		"kept claims give theirs":                          {edit: none, want: []string{"settled Forming", "give cluster prod the identity id-1"}},
		"the status was lost, the nodes know":              {spec: ephemeral(1, 1), edit: lost, want: []string{"settled Forming", "give cluster prod the identity id-1"}},
		"the status bears another identity than the nodes": {edit: func(in *Input) { in.State.Status.ClusterID = "id-2" }, want: []string{"blocked IdentityConflict"}},
		"a shard has no kept claim": {edit: func(in *Input) {
			none(in)
			in.State.Members[0].Claim, in.State.Members[1].Claim = nil, nil
		}, want: []string{"blocked IdentityConflict"}},
		"an ephemeral cluster has none": {spec: ephemeral(1, 1), edit: none, want: []string{"settled Forming", "give cluster prod the identity fresh"}},
		"kept claims disagree":          {edit: kept(func(c *state.Claim) { c.ClusterID = "id-2" }), want: []string{"blocked IdentityConflict"}},
		"a claim bears no identity":     {edit: kept(func(c *state.Claim) { c.ClusterID = "" }), want: []string{"blocked IdentityConflict"}},
		"a claim is of another shape":   {edit: kept(func(c *state.Claim) { c.Shape = "3x1" }), want: []string{"blocked IdentityConflict"}},
		"a claim goes with an earlier cluster that was deleted": {
			edit: kept(func(c *state.Claim) { c.OwnerUIDs = []string{"earlier-uid"} }), want: []string{"wait VolumeUnavailable"},
		},
		"a claim is being deleted":            {edit: kept(func(c *state.Claim) { c.Terminating = true }), want: []string{"wait VolumeUnavailable"}},
		"an ephemeral cluster ignores claims": {spec: ephemeral(1, 1), edit: func(in *Input) { none(in); in.State.Claims = []state.Claim{{Name: "x"}} }, want: []string{"settled Forming", "give cluster prod the identity fresh"}},
	})
}

func TestPasswordsExist(t *testing.T) {
	t.Parallel()
	judge(t, passwordsExist, map[string]row{
		"they do":      {want: []string{"settled"}},
		"they do not":  {edit: func(in *Input) { in.State.Passwords = nil }, want: []string{"settled Forming", "create Secret internal-prod-system-passwords"}},
		"all are gone": {edit: func(in *Input) { clear(in.State.Passwords) }, want: []string{"blocked PasswordSecretMissing"}},
		"one is gone":  {edit: func(in *Input) { delete(in.State.Passwords, name.UserOperator) }, want: []string{"blocked PasswordSecretMissing"}},
		"nobody owns them": {
			edit: func(in *Input) {
				in.State.Objects["Secret/internal-prod-system-passwords"] = state.Object{UID: "u", Orphaned: true}
			},
			want: []string{"settled Forming", "adopt Secret internal-prod-system-passwords"},
		},
		"one is empty": {edit: func(in *Input) { in.State.Passwords[name.UserReplication] = "" }, want: []string{"blocked PasswordSecretMissing"}},
	})
}

func TestObjectsCurrent(t *testing.T) {
	t.Parallel()
	judge(t, objectsCurrent, map[string]row{
		"they are": {want: []string{"settled"}},
		"none exists": {edit: func(in *Input) { in.State.Objects = nil }, want: []string{
			"settled Forming", "apply ConfigMap valkey-prod", "apply Secret internal-prod-acl", "apply Service valkey-prod-nodes",
			"apply Service valkey-prod", "apply PodDisruptionBudget valkey-prod",
		}},
		"somebody changed the Service": {
			edit: func(in *Input) { in.State.Objects["Service/valkey-prod"] = state.Object{Digest: "other"} },
			want: []string{"settled Forming", "apply Service valkey-prod"},
		},
		"the budget is not wanted any more": {
			edit: func(in *Input) {
				unbudgeted(in)
				in.State.Objects["PodDisruptionBudget/valkey-prod"] = state.Object{UID: "budget-uid"}
			},
			want: []string{"settled Forming", "delete PodDisruptionBudget valkey-prod"},
		},
		"there is no budget, and none is wanted": {
			edit: func(in *Input) { unbudgeted(in); delete(in.State.Objects, "PodDisruptionBudget/valkey-prod") },
			want: []string{"settled"},
		},
		"a budget that is not ours stays": {
			edit: func(in *Input) {
				unbudgeted(in)
				in.State.Objects["PodDisruptionBudget/valkey-prod"] = state.Object{UID: "theirs", Foreign: true}
			},
			want: []string{"settled"},
		},
		"a setting was added": {
			edit: func(in *Input) { in.Spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory": "1gb"} },
			want: []string{"settled Forming", "apply ConfigMap valkey-prod"},
		},
		"a user was added": {
			edit: func(in *Input) { in.Spec.Users = []v1alpha1.User{{Name: "app", Nopass: true}} },
			want: []string{"settled Forming", "apply Secret internal-prod-acl"},
		},
		"a password was changed": {
			edit: func(in *Input) { in.State.Passwords[name.UserOperator] = "other" },
			want: []string{"settled Forming", "apply Secret internal-prod-acl"},
		},
	})
}

func TestNodesExist(t *testing.T) {
	t.Parallel()
	gone := func(in *Input) { in.State.Members[1].Record = nil }
	judge(t, nodesExist, map[string]row{
		"they do": {want: []string{"settled"}},
		"a persistent one is gone": {edit: gone, want: []string{
			"settled Forming", "apply node prod-0-1 as valkey-operator", "apply node prod-0-1 as valkey-operator-storage",
		}},
		"an ephemeral one is gone":            {spec: ephemeral(1, 1), edit: gone, want: []string{"settled Forming", "apply node prod-0-1 as valkey-operator"}},
		"one that nobody wants is left alone": {edit: func(in *Input) { gone(in); in.State.Members[1].Wanted = false }, want: []string{"settled"}},
		"one is being deleted":                {edit: func(in *Input) { in.State.Members[1].Record.Deleting = true }, want: []string{"settled"}},
		"one was orphaned": {edit: func(in *Input) { in.State.Members[1].Record.Orphaned = true }, want: []string{
			"settled Forming", "apply node prod-0-1 as valkey-operator",
		}},
	})
}

func TestUserPasswordsFound(t *testing.T) {
	t.Parallel()
	judge(t, userPasswordsFound, map[string]row{
		"there are no users": {want: []string{"settled"}},
		"a Secret is missing": {
			edit: func(in *Input) { in.State.Users = []state.UserPasswords{{Name: "app", Missing: "Secret app"}} },
			want: []string{"wait PasswordSecretMissing"},
		},
		"all are there": {
			edit: func(in *Input) { in.State.Users = []state.UserPasswords{{Name: "app", Digests: []string{"d"}}} },
			want: []string{"settled"},
		},
	})
}

func TestNothingIsPlannedForAClusterThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	in := freshBench(persistent(3, 1), 1).input()
	in.State.Deleting = true
	if made := Make(in); len(made) != 0 {
		t.Errorf("planned %v", made)
	}
}

// The policy on one screen: which rules there are, and their order.
func TestTracks(t *testing.T) {
	t.Parallel()
	var got []string
	for _, track := range tracks {
		for _, rule := range track.Rules {
			got = append(got, track.Name+"/"+rule.Name)
		}
	}
	want := []string{
		"objects/namesFree", "objects/identityRecorded", "objects/passwordsExist", "objects/objectsCurrent", "objects/nodesExist", "objects/imageReadsData", "objects/memoryHoldsData", "objects/templatesCurrent",
		"storage/sizesGiven", "storage/growthPossible", "storage/sizesCurrent", "storage/sizeNotBelowCapacity",
		"growth/logsShort",
		"offline/stopsNeeded", "offline/offlineVolumesGrown",
		"settings/settingsAccepted", "settings/settingsGiven", "access/userPasswordsFound", "members/membersAnswer", "files/filesUsable", "gossip/nodesMet",
		"failover/primariesPresent", "slots/dataPresent", "slots/slotsAssigned", "replication/replicasAttached", "ghosts/ghostsForgotten",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, track := range tracks {
		if slices.ContainsFunc(track.Rules, func(r plan.Rule[Input]) bool { return r.Judge == nil }) {
			t.Errorf("track %s has a rule without a judge", track.Name)
		}
	}
}

func TestTheSameInputGivesTheSamePlan(t *testing.T) {
	t.Parallel()
	in := freshBench(persistent(3, 1), 1).input()
	if one, other := Make(in), Make(in); !reflect.DeepEqual(one, other) {
		t.Errorf("two plans:\n%v\n%v", one, other)
	}
}
