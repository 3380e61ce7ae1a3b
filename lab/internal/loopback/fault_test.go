package loopback

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
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

func TestAFaultMatchesTheClaimOfAVolumeYetToBeMade(t *testing.T) {
	t.Parallel()
	p := pool(t, `{"faults": {"CreateVolume": {"code": "Internal", "match": "prod/data-0"}}}`)
	for name, want := range map[string]codes.Code{"data-0": codes.Internal, "data-1": codes.OK} {
		err := p.actOut(t.Context(), "CreateVolume", &csi.CreateVolumeRequest{
			Name: "pvc-1", Parameters: map[string]string{claimNamespaceParameter: "prod", claimNameParameter: name},
		})
		wantCode(t, err, want)
	}
}

func TestOKLetsACallPastTheNextFault(t *testing.T) {
	t.Parallel()
	p := pool(t, `{"faults": {"ControllerExpandVolume": [{"code": "OK", "match": "pvc-1"}, {"code": "Internal"}]}}`)
	equal(t, answers(t, p, expandOf("pvc-1"), expandOf("pvc-2")), codes.OK, codes.Internal)
}

// TestEveryCodeReachesTheCaller asks over a socket, as Kubernetes does.
func TestEveryCodeReachesTheCaller(t *testing.T) {
	t.Parallel()
	p := pool(t, `{}`)
	socket := filepath.Join(t.TempDir(), "s")
	s := newServer(p)
	csi.RegisterControllerServer(s, &controller{pool: p, now: time.Now})
	csi.RegisterNodeServer(s, &node{pool: p})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, s, socket) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	ctl, nodes := csi.NewControllerClient(connection), csi.NewNodeClient(connection)
	// The first call waits until the server listens.
	if _, err := ctl.ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"ControllerExpandVolume": func() error {
			_, err := ctl.ControllerExpandVolume(t.Context(), expandOf("pvc-1"))
			return err
		},
		"ControllerPublishVolume": func() error {
			_, err := ctl.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "pvc-1"})
			return err
		},
		"NodeExpandVolume": func() error {
			_, err := nodes.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: "pvc-1"})
			return err
		},
	}
	for method, call := range calls {
		for _, code := range []codes.Code{codes.Internal, codes.ResourceExhausted, codes.FailedPrecondition, codes.InvalidArgument, codes.DeadlineExceeded} {
			set(t, p, fmt.Sprintf(`{"faults": {%q: {"code": %q, "message": "as told", "times": 1}}}`, method, code))
			err := call()
			wantCode(t, err, code)
			if got := status.Convert(err).Message(); got != "as told" {
				t.Errorf("%s: the message is %q", method, got)
			}
			wantCode(t, call(), codes.NotFound) // the driver's own answer: there is no such volume
		}
	}
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
