package stories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
)

func operating() []Journey {
	return []Journey{
		{
			Name:  "settled",
			Story: "A settled cluster causes no write and no event",
			Play:  settled,
		},
		{
			Name:  "promised-commands",
			Story: "The commands that users were promised work word for word",
			Limit: 6 * time.Minute,
			Play:  promisedCommands,
		},
		{
			Name:  "users",
			Story: "A user's password comes from a Secret; naming the default user closes it, without a restart",
			Tier:  Long,
			Play:  users,
		},
		{
			Name:  "operator-killed",
			Story: "The operator is killed at random moments during a growth and the loss of every pod: both end well",
			Limit: 8 * time.Minute,
			Play:  operatorKilled,
		},
		{
			Name:  "operator-upgrade",
			Story: "An operator that would build pods differently is installed: no pod of a living cluster is replaced, a new cluster gets the new pods",
			Needs: Variant,
			Play:  operatorUpgrade,
		},
	}
}

func settled(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(10_000, nil)
	expectNoWrites(s, c)
	expectStillReady(c)
}

func users(s *stage.Stage) {
	s.Apply("apiVersion: v1\nkind: Secret\nmetadata: {name: app-passwords}\nstringData: {app: first-password}\n")
	c := s.Create(stage.Spec{
		Name: "guarded", Shards: 1, Replicas: 1, Size: "64Mi",
		More: "  users:\n  - name: app\n    passwordSecret: {name: app-passwords}\n    permissions: \"~* &* +@all\"\n",
	})
	c.AwaitReady()
	c.AwaitCondition("ConfigurationWarning", metav1.ConditionTrue, "DefaultUserOpen", readyLimit)
	open, before := *c, c.Snapshot()
	c.Environment = map[string]string{"VALKEY_USERNAME": "app", "VALKEY_PASSWORD": "first-password"}
	c.Load(1_000, nil)
	s.Say("naming the default user, disabled")
	c.Patch(`{"spec":{"users":[{"name":"app","passwordSecret":{"name":"app-passwords"},"permissions":"~* &* +@all"},{"name":"default","enabled":false}]}}`)
	s.Await("the default user to be closed on every server", readyLimit, func() (bool, string) {
		var answers []string
		closed := true
		for _, m := range open.Snapshot() {
			closed = closed && strings.Contains(m.Server.Error, "NOAUTH")
			answers = append(answers, m.Server.Error)
		}
		return closed, strings.Join(answers, "; ")
	})
	s.Say("the default user is closed")
	s.Await("the warning of an open default user to end", readyLimit, func() (bool, string) {
		warning, known := contract.Condition(c.Get().Status.Conditions, "ConfigurationWarning")
		return known && warning.Reason != "DefaultUserOpen", warning.Reason
	})
	c.AwaitReady()
	expectUntouched(c, before)
	c.Verify(1_000, nil)
	s.Say("the cluster still heals: losing all pods")
	now := c.Snapshot()
	c.DeletePods()
	awaitAllReplaced(c, now)
	c.AwaitReady()
	c.Verify(1_000, nil)
}

func operatorKilled(s *stage.Stage) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not a secret
	s.Say("seed %d", seed)
	c := s.Create(persistent(3, 1))
	s.KillAtRandom(random, 2)
	c.AwaitReady()
	c.Load(20_000, nil)
	before := c.Snapshot()
	writer := c.StartWriter()
	c.Resize("128Mi")
	s.KillAtRandom(random, 2)
	awaitGrown(c, "128Mi")
	expectUntouched(c, before)
	s.Say("deleting all pods at once")
	c.DeletePods()
	s.KillAtRandom(random, 2)
	awaitAllReplaced(c, before)
	c.AwaitReady()
	expectSameIDs(c, before)
	writer.NothingLost(writer.Stop())
	c.Verify(20_000, nil)
}

// newAnnotation is what pods built by the upgraded operator have.
const newAnnotation = "valkey.io/build-variant"

func operatorUpgrade(s *stage.Stage) {
	c := s.Create(persistent(1, 1))
	ephemeral := s.Create(stage.Spec{Name: "sessions", Shards: 1, Replicas: 1})
	c.AwaitReady()
	ephemeral.AwaitReady()
	before, beforeEphemeral := c.Snapshot(), ephemeral.Snapshot()
	s.Cleanup(func(ctx context.Context) error {
		return s.InstallOperator(ctx, s.Images.Operator)
	})
	s.Say("installing %s, which gives pods one more annotation and the server one more default", s.Images.OperatorNext)
	s.NoError(s.InstallOperator(s.Context(), s.Images.OperatorNext), "upgrading the operator")
	fresh := s.Create(stage.Spec{Name: "fresh", Shards: 1})
	fresh.AwaitReady()
	for _, p := range fresh.Pods() {
		s.Expect(p.Annotations[newAnnotation] != "", "the new operator builds pods as the old one did: the journey proves nothing")
	}
	s.Say("a new cluster has the new pods; the old ones get an edit that needs a pass")
	for _, one := range []*stage.Cluster{c, ephemeral} {
		one.Patch(`{"spec":{"users":[{"name":"reader","nopass":true,"permissions":"~* +@read"}]}}`)
		awaitObserved(one)
	}
	c.Resize("128Mi")
	awaitGrown(c, "128Mi")
	expectUntouched(c, before)
	expectUntouched(ephemeral, beforeEphemeral)
	for _, p := range append(c.Pods(), ephemeral.Pods()...) {
		s.Expect(p.Annotations[newAnnotation] == "", "pod %s got the new annotation", p.Name)
	}
}

func promisedCommands(s *stage.Stage) {
	class := className(s)
	s.Shell(fmt.Sprintf(`kubectl apply -f - <<'EOF'
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata:
  name: valkey-prod
spec:%s
  shards: 3
  replicas: 2
  storage:
    enabled: true
    storageClassName: %s
    size: "64Mi"
  volumePermissions: true
EOF`, imageLine(s), class))
	c := s.Cluster(stage.Spec{Name: "valkey-prod", Shards: 3, Replicas: 2, Size: "64Mi"})
	c.AwaitReady()
	claims := strings.Count(s.Shell(`kubectl get pvc -l app.kubernetes.io/instance=valkey-prod`), "Bound")
	s.Expect(claims == 9, "kubectl get pvc -l shows %d bound claims of 9", claims)
	s.Expect(strings.Contains(s.Shell(`kubectl get valkeycluster valkey-prod -o yaml`), "state: Ready"), "the object does not say Ready")
	s.Cleanup(func(context.Context) error { s.Shell(`kill "$(cat "$DIR/pvc.pid")" 2>/dev/null || true`); return nil })
	s.Shell(`kubectl get pvc -w > "$DIR/pvc.txt" 2>&1 & echo $! > "$DIR/pvc.pid"`)
	s.Shell(`kubectl patch valkeycluster valkey-prod --type='json' -p='[{"op":"replace","path":"/spec/storage/size","value":"128Mi"}]'`)
	awaitGrown(c, "128Mi")
	s.Expect(strings.Contains(s.Shell(`cat "$DIR/pvc.txt"`), "128Mi"), "kubectl get pvc -w did not show the new size")
	s.Shell(`KUBE_EDITOR="sed -i s/128Mi/192Mi/" kubectl edit valkeycluster valkey-prod`)
	awaitGrown(c, "192Mi")
	events := s.Shell(`kubectl get events --sort-by='.lastTimestamp' | grep VolumeExpan`)
	s.Expect(strings.Contains(events, "VolumeExpanding") && strings.Contains(events, "VolumeExpanded"), "the events do not tell the growth: %s", events)
	for _, command := range []string{`kubectl get vkc`, `kubectl get valkey`, `kubectl get vkn -o wide`, `kubectl explain valkeycluster.spec.storage`} {
		s.Say("%s\n%s", command, s.Shell(command))
	}
}

func imageLine(s *stage.Stage) string {
	if s.Images.Valkey == "" {
		return ""
	}
	return "\n  image: " + s.Images.Valkey
}
