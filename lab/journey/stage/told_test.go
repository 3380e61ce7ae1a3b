package stage

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"valkey.io/valkey-operator/lab/journey/contract"
)

func event(reason, object, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "journey-told", Name: object + "." + message},
		InvolvedObject: corev1.ObjectReference{Name: object}, Reason: reason, Message: message,
	}
}

// told plays a story where these objects are.
func told(t *testing.T, story func(c *Cluster)) (failure string) {
	t.Helper()
	pod := func(node string, restarts ...int32) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "journey-told", Name: "pod-" + node, Labels: map[string]string{
			contract.LabelInstance: "orders", contract.LabelShardIndex: "0", contract.LabelNodeIndex: node,
		}}}
		for _, n := range restarts {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{RestartCount: n})
		}
		return p
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "journey-told", Name: "valkey-orders-0-1-data", Labels: pod("1").Labels,
	}}
	warning := event("TableDamaged", "orders-0-1", "nodes.conf is cut")
	warning.Type = corev1.EventTypeWarning
	w := &World{Out: &strings.Builder{}, kubectl: "false", Typed: fake.NewClientset(
		event("VolumeExpanding", "orders", "b"), event("VolumeExpanding", "orders", "a"), event("DiskFull", "orders-0-1", "no room"),
		warning, pod("0", 2, 1), pod("1"), claim)}
	return w.Play(t.Context(), Scene{Name: "told"}, func(s *Stage) {
		story(s.Cluster(Spec{Name: "orders", Shards: 1, Replicas: 1}))
	})
}

func TestWhatKubernetesTells(t *testing.T) {
	t.Parallel()
	failure := told(t, func(c *Cluster) {
		var messages []string
		for _, e := range c.Events("VolumeExpanding") {
			messages = append(messages, e.Message)
		}
		if diff := cmp.Diff([]string{"a", "b"}, messages); diff != "" {
			t.Error(diff)
		}
		if e := c.AwaitEvent("DiskFull", "orders-0-1", time.Minute); e.Message != "no room" {
			t.Errorf("the event is %q", e.Message)
		}
		c.AwaitWarning(time.Minute, "orders-0-1", "nodes.conf")
		if diff := cmp.Diff(map[string]int{"0-0": 3, "0-1": 0}, c.Restarts()); diff != "" {
			t.Error(diff)
		}
		if claim := c.Claim("0-1"); claim.Name != "valkey-orders-0-1-data" {
			t.Errorf("the claim is %q", claim.Name)
		}
	})
	if failure != "" {
		t.Error(failure)
	}
}

func TestWhatIsNotToldEndsTheJourney(t *testing.T) {
	t.Parallel()
	for want, story := range map[string]func(c *Cluster){
		`an event DiskFull with "orders-0-0"; seen last: of that reason: orders-0-1: no room`: func(c *Cluster) {
			c.AwaitEvent("DiskFull", "orders-0-0", time.Millisecond)
		},
		`a warning with ["orders-0-1" "dump.rdb"]; seen last: 4 events, none of them`: func(c *Cluster) {
			c.AwaitWarning(time.Millisecond, "orders-0-1", "dump.rdb")
		},
		`a warning with ["no room"]`: func(c *Cluster) { c.AwaitWarning(time.Millisecond, "no room") },
		"member 0-0 has no claim":    func(c *Cluster) { c.Claim("0-0") },
		`condition member 0-1's Ready to be True/Fine; seen last: False/Broken "it broke"`: func(c *Cluster) {
			c.awaitCondition("member 0-1's Ready", Told{"Ready", metav1.ConditionTrue, "Fine"}, time.Millisecond, func() ([]metav1.Condition, error) {
				return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Broken", Message: "it broke"}}, nil
			})
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if failure := told(t, story); !strings.Contains(failure, want) {
				t.Errorf("the failure is %q", failure)
			}
		})
	}
}
