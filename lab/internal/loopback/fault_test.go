package loopback

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func expandOf(id string) *csi.ControllerExpandVolumeRequest {
	return &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 1}}
}

// answers are the codes of calls one after the other.
func answers(t *testing.T, p Pool, requests ...any) (got []codes.Code) {
	t.Helper()
	for _, r := range requests {
		got = append(got, status.Code(p.actOut(t.Context(), "/csi.v1.Controller/ControllerExpandVolume", r)))
	}
	return got
}

func equal(t *testing.T, got []codes.Code, want ...codes.Code) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestAFaultFailsTheCallsItMatches(t *testing.T) {
	t.Parallel()
	p := pool(t, `{"faults": {"ControllerExpandVolume": {"code": "ResourceExhausted", "message": "no more", "match": "pvc-1"}}}`)
	equal(t, answers(t, p, expandOf("pvc-1"), expandOf("pvc-2"), expandOf("pvc-1")), codes.ResourceExhausted, codes.OK, codes.ResourceExhausted)
	err := p.actOut(t.Context(), "/csi.v1.Controller/ControllerExpandVolume", expandOf("pvc-1"))
	if status.Convert(err).Message() != "no more" {
		t.Errorf("the message is %q", status.Convert(err).Message())
	}
	if err := p.actOut(t.Context(), "/csi.v1.Node/NodeExpandVolume", expandOf("pvc-1")); err != nil {
		t.Errorf("another method is not touched: %v", err)
	}
}

func TestAFaultMatchesTheClaim(t *testing.T) {
	t.Parallel()
	p := pool(t, `{"faults": {"ControllerExpandVolume": {"code": "Internal", "match": "prod/data-0"}}}`)
	if err := p.put("pvc-1", volume{Name: "pvc-1", Claim: "prod/data-0"}); err != nil {
		t.Fatal(err)
	}
	if err := p.resize("pvc-1", 1); err != nil {
		t.Fatal(err)
	}
	equal(t, answers(t, p, expandOf("pvc-1"), expandOf("pvc-2")), codes.Internal, codes.OK)
}

func TestAFaultIsActedOutSoManyTimes(t *testing.T) {
	t.Parallel()
	const twice = `{"faults": {"ControllerExpandVolume": {"code": "Internal", "times": 2}}}`
	p := pool(t, twice)
	r := expandOf("pvc-1")
	equal(t, answers(t, p, r), codes.Internal)
	// A node's process, or the same one started again, goes on counting.
	again := Pool{Dir: p.Dir}
	equal(t, answers(t, again, r, r, r), codes.Internal, codes.OK, codes.OK)
	set(t, p, twice)
	equal(t, answers(t, p, r, r, r), codes.Internal, codes.Internal, codes.OK)
}

func TestTheNextFaultFollowsASpentOne(t *testing.T) {
	t.Parallel()
	p := pool(t, `{"faults": {"ControllerExpandVolume": [{"code": "Internal", "times": 1}, {"code": "Unavailable", "times": 1}]}}`)
	r := expandOf("pvc-1")
	equal(t, answers(t, p, r, r, r), codes.Internal, codes.Unavailable, codes.OK)
}

func TestADelayedCallEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	p := pool(t, `{"faults": {"ControllerExpandVolume": {"delay": "10s"}}}`)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		equal(t, answers(t, p, expandOf("pvc-1")), codes.OK)
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("it took %v, want 10s", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := p.actOut(ctx, "ControllerExpandVolume", expandOf("pvc-1"))
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("an impatient caller gets %v", err)
		}
	})
}
