package report

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
)

func TestStatusOfSettings(t *testing.T) {
	t.Parallel()
	formed := func(in *cluster.Input) { in.State.Status.Formed = true }
	told := func(reason string) func(*cluster.Input) {
		return func(in *cluster.Input) {
			formed(in)
			in.State.Members[1].Record.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionWorkloadReady, Status: metav1.ConditionFalse, Reason: reason, Message: "'io-threads 500' is too much",
			}}
		}
	}
	gives := plan.SetConfig{To: plan.Server{Node: "prod-0-1"}, Settings: map[string]string{"hz": "0"}}
	asked := plan.Verdict{Reason: v1alpha1.ReasonConfigApplying, Note: "changed settings are tried", Actions: []plan.Action{gives}}
	silent := plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonMemberUnreachable, Note: "waiting"}
	type changes = map[string]string
	for what, row := range map[string]struct {
		edit    func(*cluster.Input)
		step    plan.Verdict
		outcome plan.Outcome
		silent  bool
		quotes  string
		want    changes
	}{
		"changed ones are given": {edit: formed, step: asked, want: changes{
			"state": "Reconciling ConfigApplying", "Progressing": "True ConfigApplying",
		}},
		"each process is given them once more, which is no change": {edit: formed, step: plan.Verdict{Actions: []plan.Action{gives}}, want: changes{}},
		"a server refuses them": {
			edit: formed, step: asked, quotes: "node prod-0-1",
			outcome: plan.Outcome{{Rule: cluster.RuleSettingsAccepted, At: gives, Err: &plan.Refusal{Reason: v1alpha1.ReasonConfigRefused, Message: "no"}}},
			want:    changes{"state": "Degraded ConfigRefused", "Degraded": "True ConfigRefused", "Progressing": "True ConfigApplying"},
		},
		"it has refused them": {
			edit: formed, step: plan.Verdict{Hold: plan.Blocked, Reason: v1alpha1.ReasonConfigRefused, Note: "it does"}, quotes: "it does",
			want: changes{"state": "Degraded ConfigRefused", "Degraded": "True ConfigRefused"},
		},
		"a server does not start with them, and so does not answer": {
			edit: told(v1alpha1.ReasonConfigRefused), silent: true, quotes: "node prod-0-1: 'io-threads 500'",
			want: changes{
				"state": "Degraded ConfigRefused", "Degraded": "True ConfigRefused", "Ready": "False MemberUnreachable", "Progressing": "True MemberUnreachable",
			},
		},
		"a server could not read its files": {
			edit: told(v1alpha1.ReasonDowngradeRefused), silent: true, quotes: "node prod-0-1:",
			want: changes{
				"state": "Degraded DowngradeRefused", "Degraded": "True DowngradeRefused", "Ready": "False MemberUnreachable", "Progressing": "True MemberUnreachable",
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in, given := settledCluster(), map[string]plan.Verdict{}
			row.edit(&in)
			if row.silent {
				given["membersAnswer"] = silent
			}
			made := append(verdicts(given), plan.Step{Track: "settings", Rule: cluster.RuleSettingsAccepted, Verdict: row.step})
			checkStatus(t, in, made, row.outcome, row.want)
			if status := Cluster(in, made, row.outcome); row.quotes != "" && !strings.Contains(status.Message, row.quotes) {
				t.Errorf("it says: %s", status.Message)
			}
		})
	}
}
