package stage

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
)

// Events are the namespace's events of a reason, by the name of their object
// and their message.
func (s *Stage) Events(reason string) []corev1.Event {
	list, err := s.Typed.CoreV1().Events(s.Namespace).List(s.ctx, metav1.ListOptions{})
	s.NoError(err, "listing events")
	var found []corev1.Event
	for _, e := range list.Items {
		if e.Reason == reason {
			found = append(found, e)
		}
	}
	key := func(e corev1.Event) string { return e.InvolvedObject.Name + " " + e.Message }
	sort.Slice(found, func(i, j int) bool { return key(found[i]) < key(found[j]) })
	return found
}

// AwaitWarning waits for a warning whose object's name and message have all words.
func (s *Stage) AwaitWarning(within time.Duration, words ...string) {
	s.Await(fmt.Sprintf("a warning with %q", words), within, func() (bool, string) {
		list, err := s.Typed.CoreV1().Events(s.Namespace).List(s.ctx, metav1.ListOptions{})
		s.NoError(err, "listing events")
		for _, e := range list.Items {
			if e.Type == corev1.EventTypeWarning && hasAll(e.InvolvedObject.Name+" "+e.Message, words) {
				s.Say("warning %s of %s: %s", e.Reason, e.InvolvedObject.Name, e.Message)
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d events, none of them", len(list.Items))
	})
}

// hasAll says whether a text has all words.
func hasAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// AwaitTold waits until some condition has a reason and its message all words;
// an empty reason takes any.
func (c *Cluster) AwaitTold(reason string, within time.Duration, words ...string) metav1.Condition {
	var told metav1.Condition
	c.Await(fmt.Sprintf("cluster %s to tell %s %q", c.Spec.Name, reason, words), within, func() (bool, string) {
		got := c.Get()
		for _, condition := range got.Status.Conditions {
			if (reason == "" || condition.Reason == reason) && hasAll(condition.Message, words) {
				told = condition
				return true, ""
			}
		}
		return false, got.Brief()
	})
	c.Say("%s is %s/%s: %s", told.Type, told.Status, told.Reason, told.Message)
	return told
}

// AwaitUntold waits until no condition has a reason any more.
func (c *Cluster) AwaitUntold(reason string, within time.Duration) {
	c.Await(fmt.Sprintf("cluster %s to tell %s no more", c.Spec.Name, reason), within, func() (bool, string) {
		for _, condition := range c.Get().Status.Conditions {
			if condition.Reason == reason {
				return false, condition.Message
			}
		}
		return true, ""
	})
}

// AwaitEvent waits for an event of a reason whose object's name or message has
// a word; an empty word takes any.
func (s *Stage) AwaitEvent(reason, word string, within time.Duration) corev1.Event {
	var found corev1.Event
	s.Await(fmt.Sprintf("an event %s with %q", reason, word), within, func() (bool, string) {
		all := s.Events(reason)
		for _, e := range all {
			if strings.Contains(e.InvolvedObject.Name+" "+e.Message, word) {
				found = e
				return true, ""
			}
		}
		return false, "of that reason: " + briefEvents(all)
	})
	s.Say("event %s of %s: %s", reason, found.InvolvedObject.Name, found.Message)
	return found
}

func briefEvents(all []corev1.Event) string {
	if len(all) == 0 {
		return "none"
	}
	lines := make([]string, len(all))
	for i, e := range all {
		lines[i] = e.InvolvedObject.Name + ": " + e.Message
	}
	return strings.Join(lines, "; ")
}

// Node is a member's ValkeyNode.
func (c *Cluster) Node(member string) contract.Node {
	for _, n := range c.Nodes() {
		if memberOf(n.Metadata.Labels) == member {
			return n
		}
	}
	c.Fail("member %s has no valkeynode", member)
	return contract.Node{}
}

// Told is what a condition says; an empty reason takes any.
type Told struct {
	Kind   string
	Status metav1.ConditionStatus
	Reason string
}

// awaitCondition waits for a condition; what is its name in the narration.
func (s *Stage) awaitCondition(what string, want Told, within time.Duration, read func() ([]metav1.Condition, error)) metav1.Condition {
	var last metav1.Condition
	s.Await(fmt.Sprintf("condition %s to be %s/%s", what, want.Status, or(want.Reason, "any reason")), within, func() (bool, string) {
		all, err := read()
		if err != nil {
			return false, err.Error()
		}
		last, _ = contract.Condition(all, want.Kind)
		seen := fmt.Sprintf("%s/%s %q", last.Status, last.Reason, last.Message)
		return contract.Is(all, want.Kind, want.Status, want.Reason), seen
	})
	s.Say("%s is %s with reason %s: %s", what, last.Status, last.Reason, last.Message)
	return last
}

// AwaitNodeCondition is AwaitCondition of a member's ValkeyNode.
func (c *Cluster) AwaitNodeCondition(member string, want Told, within time.Duration) metav1.Condition {
	return c.awaitCondition("member "+member+"'s "+want.Kind, want, within, func() ([]metav1.Condition, error) {
		return c.Node(member).Status.Conditions, nil
	})
}

// AwaitVolume waits until the line of a member in status.storage.volumes has a
// reason, and returns it.
func (c *Cluster) AwaitVolume(member, reason string, within time.Duration) contract.Volume {
	var last contract.Volume
	name := c.Spec.Name + "-" + member
	c.Await(fmt.Sprintf("the volume of %s to have the reason %s", name, reason), within, func() (bool, string) {
		for _, v := range c.Get().Status.Storage.Volumes {
			if v.Node == name {
				last = v
			}
		}
		return last.Reason == reason, fmt.Sprintf("%s/%s %q", last.Phase, last.Reason, last.Message)
	})
	c.Say("the volume of %s is %s with reason %s: %s", name, last.Phase, last.Reason, last.Message)
	return last
}

// Restarts is how often each member's containers were restarted. It asks
// Kubernetes alone, so it works where no server answers.
func (c *Cluster) Restarts() map[string]int {
	restarts := map[string]int{}
	for _, p := range c.Pods() {
		if p.DeletionTimestamp == nil {
			restarts[memberOf(p.Labels)] = restartsOf(&p)
		}
	}
	return restarts
}

func restartsOf(p *corev1.Pod) int {
	n := 0
	for _, status := range p.Status.ContainerStatuses {
		n += int(status.RestartCount)
	}
	return n
}
