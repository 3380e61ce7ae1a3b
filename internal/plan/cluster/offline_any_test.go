package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/apply"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// passTime is how much later each pass sees its world. Servers live slower than
// that here, so that waits of the operator take few passes.
const passTime = 5 * time.Second

// site is one member's volume and what its node controller makes of it.
type site struct {
	*seat

	stopped bool   // by its ValkeyNode's spec
	inVain  string // by its annotation
	// down says since when its node says that it is stopped for its volume; zero: it is not.
	down time.Time
	// grown is how far its volume is: 0 refused as in use, 1 all but its file system, 2 done.
	grown int
	gone  int // passes since its pod went
}

// yard is a cluster in weather whose volumes grow only while no pod uses them.
type yard struct {
	*climate
	sites  []*site
	now    time.Time
	asked  map[int]time.Time
	takes  int  // passes that the driver takes
	broken bool // the driver does nothing
}

// Whatever the weather: never are two members of a shard stopped, nor a slot owner
// with a replica, nor anybody while something is unknown; and once it is fine all
// volumes grow, or a driver that does nothing is told, and everybody runs.
func TestOfflineGrowthInAnyWeather(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := rolling(rapid.Int32Range(1, 5).Draw(t, "shards"), rapid.Int32Range(0, 2).Draw(t, "replicas"))
		b := formedBench(spec, rapid.Uint64().Draw(t, "seed"))
		y := &yard{
			climate: &climate{bench: b, t: t, emptied: map[int]bool{}}, now: noon, asked: map[int]time.Time{},
			takes: rapid.IntRange(1, 4).Draw(t, "driver takes"), broken: rapid.IntRange(0, 5).Draw(t, "driver") == 0,
		}
		for _, s := range b.seats {
			y.sites = append(y.sites, &site{seat: s})
		}
		b.edits = append(b.edits, y.see)
		for range rapid.IntRange(0, 6).Draw(t, "turns") {
			y.turn()
			for range rapid.IntRange(0, 20).Draw(t, "passes") {
				y.pass(rapid.Bool().Draw(t, "node controllers are quick"))
			}
		}
		y.clear()
		y.mustEnd()
		if lost := b.servers.Lost(); len(lost) != 0 {
			t.Errorf("lost %v", lost)
		}
	})
}

// turn has something happen: to a server, or to the operator.
func (y *yard) turn() {
	s := rapid.SampledFrom(y.sites).Draw(y.t, "member")
	switch rapid.SampledFrom([]string{"silent", "heard", "mute", "told", "lagging", "well", "killed"}).Draw(y.t, "turn") {
	case "silent":
		s.server.Silence(true)
	case "heard":
		s.server.Silence(false)
	case "mute":
		s.mute = true
	case "told":
		s.mute = false
	case "lagging":
		s.server.Lag(true)
	case "well":
		s.server.Lag(false)
	case "killed": // the operator, with what it remembers
		y.asked = map[int]time.Time{}
	}
}

func (y *yard) clear() {
	for _, s := range y.sites {
		s.server.Silence(false)
		s.server.Lag(false)
		s.mute = false
	}
}

// see shows the volumes and nodes as they are.
func (y *yard) see(in *Input) {
	in.Spec.Storage = in.Spec.Storage.DeepCopy()
	in.Spec.Storage.Size = new(resource.MustParse("20Gi"))
	in.State.Now, in.State.FailOvers = y.now, y.asked
	for i, s := range y.sites {
		member := &in.State.Members[i]
		member.Record.Spec.Storage.Size = new(resource.MustParse("20Gi"))
		member.Record.Spec.Stopped, member.Record.StoppedInVain = s.stopped, s.inVain
		member.Claim.Requested = resource.MustParse("20Gi")
		phase := v1alpha1.StorageOfflineRequired
		switch s.grown {
		case 0:
			member.Claim.Conditions = []state.ClaimCondition{{
				Type: string(corev1.PersistentVolumeClaimControllerResizeError), Status: corev1.ConditionTrue, Message: "FailedPrecondition", Since: noon.Add(-time.Hour),
			}}
		case 1:
			phase, member.Claim.ResizeStatus = v1alpha1.StorageFileSystemPending, string(corev1.PersistentVolumeClaimNodeResizePending)
		default:
			phase, member.Claim.Capacity = v1alpha1.StorageSatisfied, resource.MustParse("20Gi")
		}
		member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{Phase: phase}
		if !s.down.IsZero() {
			told(member, v1alpha1.ConditionWorkloadReady, v1alpha1.ReasonVolumeExpanding, noon.Sub(s.down))
		}
	}
}

// pass has the operator look once and act, and the world go on.
func (y *yard) pass(quick bool) plan.Plan {
	in := y.input()
	made := Make(in)
	var others plan.Plan
	for _, step := range made {
		if step.Track == "offline" {
			y.perform(in, step)
		} else if step.Track != "storage" {
			others = append(others, step)
		}
	}
	hands := apply.Applier{Dial: y.servers.Dial}
	hands.Run(context.Background(), others)
	if quick {
		y.nodes()
	}
	y.storage()
	y.servers.Step()
	y.now = y.now.Add(passTime)
	return made
}

func (y *yard) perform(in Input, step plan.Step) {
	for _, action := range step.Actions {
		switch act := action.(type) {
		case plan.EnsureNode:
			s := y.site(act.Node)
			stop, _, _ := unstructured.NestedBool(act.Fields.Object, "spec", "stopped")
			s.inVain = act.Fields.GetAnnotations()[name.AnnotationStoppedInVain]
			if stop {
				y.checkStop(in, s)
			}
			s.stopped = stop
		case plan.FailOver:
			y.asked[act.Shard] = in.State.Now
			server, err := y.servers.Dial(y.context(), valkey.Target{Address: act.Replica.Address})
			if err == nil {
				_ = server.Failover(y.context(), valkey.Graceful) // what it came to is read from the roles
				server.Close()
			}
		default:
			y.t.Errorf("unexpected: %s", action)
		}
	}
}

func (y *yard) site(node string) *site {
	for _, s := range y.sites {
		if name.Node("prod", s.shard, s.index) == node {
			return s
		}
	}
	y.t.Fatalf("there is no node %s", node)
	return nil
}

// checkStop compares a stop with the truth.
func (y *yard) checkStop(in Input, stopping *site) {
	if len(in.voices()) < len(in.wanted())-y.awayCount() {
		y.t.Errorf("node %d-%d is stopped while somebody is not heard", stopping.shard, stopping.index)
	}
	shards := map[int]bool{stopping.shard: true}
	for _, s := range y.sites {
		away := s.stopped || !s.down.IsZero()
		if away && s != stopping && s.shard == stopping.shard {
			y.t.Errorf("node %d-%d is stopped beside %d-%d", stopping.shard, stopping.index, s.shard, s.index)
		}
		if away {
			shards[s.shard] = true
		}
	}
	if len(shards) > 1 && 2*len(shards) >= int(y.spec.Shards) {
		y.t.Errorf("members of %d shards of %d are stopped", len(shards), y.spec.Shards)
	}
	if myself, _ := stopping.server.View().Myself(); y.spec.Replicas > 0 && !myself.Slots.IsEmpty() {
		y.t.Errorf("node %d-%d is stopped and owns slots %s", stopping.shard, stopping.index, myself.Slots)
	}
}

func (y *yard) awayCount() int {
	count := 0
	for _, s := range y.sites {
		if s.stopped || !s.down.IsZero() {
			count++
		}
	}
	return count
}

// nodes does what the node controllers and the workloads do.
func (y *yard) nodes() {
	for _, s := range y.sites {
		myself, _ := s.server.View().Myself()
		mayEnd := !s.mute && (y.spec.Replicas == 0 || myself.Slots.IsEmpty())
		switch {
		case s.stopped && !s.podless && mayEnd:
			y.end(s.seat)
			s.down, s.gone = y.now, 0
		case !s.stopped && s.podless:
			y.begin(s.seat, valkeytest.Kept)
		case !s.podless && y.inSyncTruly(s):
			s.down = time.Time{}
		}
	}
}

func (y *yard) inSyncTruly(s *site) bool {
	view := s.server.View()
	link := view.Info.Replication.Primary
	return view.Cluster.StateOK && (link == nil || link.Up && !link.SyncInProgress)
}

// storage does what the resizer, the driver and the kubelet do.
func (y *yard) storage() {
	for _, s := range y.sites {
		switch {
		case s.podless:
			s.gone++
			if s.grown == 0 && !y.broken && s.gone >= y.takes {
				s.grown = 1
			}
		case s.grown == 1:
			s.grown = 2
		}
	}
}

// mustEnd lets passes go on until nothing is left to do, or the driver is told to
// do nothing.
func (y *yard) mustEnd() {
	var made plan.Plan
	for range 3 * mostPasses {
		made = y.pass(true)
		if y.awayCount() == 0 && y.ended(made) {
			return
		}
	}
	for _, step := range made {
		y.t.Logf("%s/%s %s %s", step.Track, step.Rule, step.Hold, step.Note)
	}
	for _, s := range y.sites {
		y.t.Logf("%d-%d stopped %t in vain %q down %s grown %d podless %t", s.shard, s.index, s.stopped, s.inVain, s.down, s.grown, s.podless)
	}
	y.t.Fatalf("it does not end")
}

func (y *yard) ended(made plan.Plan) bool {
	step, asked := made.Step(RuleOfflineVolumesGrown)
	if y.broken {
		return asked && step.Hold == plan.Blocked && step.Reason == v1alpha1.ReasonExpansionStalled
	}
	for _, s := range y.sites {
		if s.grown != 2 {
			return false
		}
	}
	return asked && step.Hold == plan.Settled && len(step.Actions) == 0 && y.served()
}
