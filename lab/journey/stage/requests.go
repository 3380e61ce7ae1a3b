package stage

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	flowv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verbs are counted one by one; leases apart, whatever the verb: leader
// election renews its lease all the time.
var verbs = []string{"leases", "get", "list", "watch", "create", "update", "patch", "delete"}

// writing are the verbs that change something.
var writing = []string{"create", "update", "patch", "delete"}

// Requests are numbers of API requests by verb.
type Requests map[string]int

// Writes is the number of requests that change something, leases aside.
func (r Requests) Writes() int {
	n := 0
	for _, verb := range writing {
		n += r[verb]
	}
	return n
}

// Total is the number of requests, leases aside.
func (r Requests) Total() int {
	n := 0
	for verb, count := range r {
		if verb != "leases" {
			n += count
		}
	}
	return n
}

// String lists the verbs in a fixed order.
func (r Requests) String() string {
	parts := make([]string, 0, len(verbs))
	for _, verb := range verbs {
		parts = append(parts, fmt.Sprintf("%s %d", verb, r[verb]))
	}
	return strings.Join(parts, ", ")
}

// CountRequests counts a service account's API requests during a time.
func (s *Stage) CountRequests(account string, during time.Duration) Requests {
	return s.CountRequestsWhile(account, func() {
		select {
		case <-s.ctx.Done():
			s.Fail("the time of the journey is over while counting requests")
		case <-time.After(during):
		}
	})
}

// CountRequestsWhile counts them while something is done. The API
// server counts requests by flow schema and not by user, so one flow schema
// for each verb is made that matches this user only; it sends the requests to
// the level where a service account's go anyway. They are deleted at the end.
func (s *Stage) CountRequestsWhile(account string, do func()) Requests {
	parts := strings.Split(account, ":")
	s.Expect(len(parts) == 4, "%s is not system:serviceaccount:NAMESPACE:NAME", account)
	s.NoError(s.dropSchemas(s.ctx), "removing old flow schemas")
	s.Cleanup(s.dropSchemas)
	for i, verb := range verbs {
		_, err := s.Typed.FlowcontrolV1().FlowSchemas().Create(s.ctx, flowSchema(verb, parts[2], parts[3], i), metav1.CreateOptions{})
		s.NoError(err, "making a flow schema")
	}
	s.Await("the flow schemas to count", time.Minute, func() (bool, string) {
		counts, err := s.dispatched()
		s.NoError(err, "reading the API server's metrics")
		return counts["leases"] > 0, counts.String()
	})
	before, err := s.dispatched()
	s.NoError(err, "reading the API server's metrics")
	do()
	after, err := s.dispatched()
	s.NoError(err, "reading the API server's metrics")
	for verb := range after {
		after[verb] -= before[verb]
	}
	return after
}

func (s *Stage) dropSchemas(ctx context.Context) error {
	args := []string{"delete", "flowschema", "--ignore-not-found"}
	for _, verb := range verbs {
		args = append(args, schemaName(verb))
	}
	_, err := s.kubectlIn(ctx, "", "", args...)
	return err
}

func schemaName(verb string) string { return "journey-" + verb }

func flowSchema(verb, namespace, account string, order int) *flowv1.FlowSchema {
	rule := flowv1.ResourcePolicyRule{
		Verbs: []string{verb}, APIGroups: []string{"*"}, Resources: []string{"*"},
		ClusterScope: true, Namespaces: []string{"*"},
	}
	if verb == "leases" {
		rule.Verbs, rule.APIGroups, rule.Resources = []string{"*"}, []string{"coordination.k8s.io"}, []string{"leases"}
	}
	subject := flowv1.Subject{
		Kind:           flowv1.SubjectKindServiceAccount,
		ServiceAccount: &flowv1.ServiceAccountSubject{Namespace: namespace, Name: account},
	}
	return &flowv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: schemaName(verb)},
		Spec: flowv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowv1.PriorityLevelConfigurationReference{Name: "workload-low"},
			MatchingPrecedence:         int32(400 + order),
			DistinguisherMethod:        &flowv1.FlowDistinguisherMethod{Type: flowv1.FlowDistinguisherMethodByUserType},
			Rules:                      []flowv1.PolicyRulesWithSubjects{{Subjects: []flowv1.Subject{subject}, ResourceRules: []flowv1.ResourcePolicyRule{rule}}},
		},
	}
}

var dispatchedLine = regexp.MustCompile(`(?m)^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="journey-([a-z]+)"[^}]*\} (\S+)`)

// dispatched reads the counters, which only grow.
func (s *Stage) dispatched() (Requests, error) {
	text, err := s.Typed.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(s.ctx)
	if err != nil {
		return nil, err
	}
	counts := Requests{}
	for _, m := range dispatchedLine.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		counts[m[1]] += int(n)
	}
	return counts, nil
}
