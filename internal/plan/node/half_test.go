package node

import (
	"testing"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
)

// The size of a ValkeyNode is written after the rest of it: between the two
// there is no claim to be made.
func TestNoClaimIsMadeWithoutASize(t *testing.T) {
	t.Parallel()
	verdict := claimExists(Input{Spec: v1alpha1.ValkeyNodeSpec{Storage: v1alpha1.NodeStorage{Enabled: true, ClaimName: "data"}}})
	if verdict.Hold != plan.Wait || len(verdict.Actions) != 0 || verdict.Look == 0 {
		t.Errorf("it is %+v", verdict)
	}
}
