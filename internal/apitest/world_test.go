//go:build apiserver

package apitest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// Classes of volumes that grow and that do not.
const (
	classGrowing = "growing"
	classFixed   = "fixed"
)

func makeClasses(ctx context.Context) error {
	for class, grows := range map[string]bool{classGrowing: true, classFixed: false} {
		if err := admin.Create(ctx, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "test.valkey.io/none", AllowVolumeExpansion: &grows,
		}); err != nil {
			return fmt.Errorf("making class %s: %w", class, err)
		}
	}
	return nil
}

// world is a namespace in which a test plays what the API server lacks: the
// controllers of workloads, the scheduler, the kubelet with its pods' servers
// and agents, and the driver of volumes.
type world struct {
	t         *testing.T
	namespace string
	servers   *valkeytest.Cluster

	mutex  sync.Mutex
	pods   map[string]runningPod // by IP address
	lastIP int
	held   bool // volumes do not grow for now
	// filled are the bytes that a shard's volumes are filled with; of the others
	// agents tell what means nothing.
	filled map[int]int64
}

type runningPod struct {
	uid    string
	facts  protocol.Facts
	server *valkeytest.Node
}

// newWorld makes a namespace that lives on its own until the test ends.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newNamespace(t)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { w.live(ctx) })
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	return w
}

// newNamespace makes a namespace in which nothing happens by itself.
func newNamespace(t *testing.T) *world {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	return &world{
		t: t, namespace: namespace.Name,
		servers: valkeytest.New(valkeytest.Options{}), pods: map[string]runningPod{},
	}
}

// live moves the world until the context ends.
func (w *world) live(ctx context.Context) {
	for pause(ctx) == nil {
		for _, move := range []func(context.Context) error{w.moveClaims, w.makePods, w.movePods} {
			// Somebody else was faster, or the test is over: the next look shows it.
			if err := move(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
				w.t.Errorf("the world stands still: %v", err)
				return
			}
		}
		w.servers.Step()
	}
}

// holdGrowth keeps volumes from growing, or lets them.
func (w *world) holdGrowth(held bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.held = held
}

func (w *world) growthHeld() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.held
}

// moveClaims binds claims and grows their volumes.
func (w *world) moveClaims(ctx context.Context) error {
	var claims corev1.PersistentVolumeClaimList
	if err := admin.List(ctx, &claims, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		requested, capacity := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
		var err error
		switch {
		case claim.Status.Phase != corev1.ClaimBound:
			err = bind(ctx, claim)
		case capacity.Cmp(requested) < 0 && !w.growthHeld():
			err = grow(ctx, claim)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bind gives a claim a volume of the size that it asks for.
func bind(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	claim.Spec.VolumeName = "volume-" + string(claim.UID)
	if err := admin.Update(ctx, claim); err != nil {
		return fmt.Errorf("binding claim %s: %w", claim.Name, err)
	}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = claim.Spec.AccessModes
	return grow(ctx, claim)
}

// grow gives a claim all that it asks for.
func grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	claim.Status.Capacity = claim.Spec.Resources.Requests.DeepCopy()
	claim.Status.AllocatedResources = claim.Spec.Resources.Requests.DeepCopy()
	if err := admin.Status().Update(ctx, claim); err != nil {
		return fmt.Errorf("growing claim %s: %w", claim.Name, err)
	}
	return nil
}

// makePods makes the pods that workloads lack.
func (w *world) makePods(ctx context.Context) error {
	var sets appsv1.StatefulSetList
	var deployments appsv1.DeploymentList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&sets, &deployments, &pods} {
		if err := admin.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
	}
	for i := range sets.Items {
		if err := makePod(ctx, &sets.Items[i], "StatefulSet", sets.Items[i].Spec.Template, pods.Items); err != nil {
			return err
		}
	}
	for i := range deployments.Items {
		if err := makePod(ctx, &deployments.Items[i], "Deployment", deployments.Items[i].Spec.Template, pods.Items); err != nil {
			return err
		}
	}
	return nil
}

func makePod(ctx context.Context, workload client.Object, kind string, template corev1.PodTemplateSpec, pods []corev1.Pod) error {
	has := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return metav1.IsControlledBy(&pod, workload) })
	if has || workload.GetDeletionTimestamp() != nil {
		return nil
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workload.GetNamespace(), Name: workload.GetName() + "-0",
			Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(workload, appsv1.SchemeGroupVersion.WithKind(kind))},
		},
		Spec: template.Spec,
	}
	pod.Spec.NodeName = "worker"
	if err := admin.Create(ctx, pod); err != nil {
		return fmt.Errorf("making pod %s: %w", pod.Name, err)
	}
	return nil
}

// movePods starts the servers of new pods and ends those of deleted ones.
func (w *world) movePods(ctx context.Context) error {
	var pods corev1.PodList
	if err := admin.List(ctx, &pods, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		var err error
		switch {
		case pod.DeletionTimestamp != nil:
			w.end(pod)
			err = admin.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		case pod.Status.PodIP == "":
			err = w.start(ctx, pod)
		}
		if err != nil {
			return fmt.Errorf("moving pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// start runs a pod's server and agent, and says that it is ready.
func (w *world) start(ctx context.Context, pod *corev1.Pod) error {
	facts, err := factsOf(pod)
	if err != nil {
		return err
	}
	w.mutex.Lock()
	w.lastIP++
	address := fmt.Sprintf("10.0.%d.%d", w.lastIP/250, w.lastIP%250+1)
	w.pods[address] = runningPod{uid: string(pod.UID), facts: facts, server: w.servers.Add(address + ":6379")}
	w.mutex.Unlock()
	now := metav1.NewTime(time.Now())
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
	}
	return admin.Status().Update(ctx, pod)
}

func (w *world) end(pod *corev1.Pod) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if running, is := w.pods[pod.Status.PodIP]; is && running.uid == string(pod.UID) {
		running.server.Kill()
		delete(w.pods, pod.Status.PodIP)
	}
}

// factsOf is what the agent of a pod would say of its member: what its command
// line tells it.
func factsOf(pod *corev1.Pod) (protocol.Facts, error) {
	command := pod.Spec.Containers[0].Command
	value := func(flag string) string {
		if at := slices.Index(command, flag); at >= 0 && at+1 < len(command) {
			return command[at+1]
		}
		return ""
	}
	shard, shardErr := strconv.Atoi(value("--shard"))
	node, nodeErr := strconv.Atoi(value("--node"))
	return protocol.Facts{
		Version: protocol.Version, ClusterID: value("--cluster-id"), Shard: shard, Node: node,
		Server: protocol.ServerRunning, Decision: protocol.DecisionStart, Ready: true,
		Disk: &protocol.Disk{TotalBytes: 1000, AvailableBytes: 700},
	}, errors.Join(shardErr, nodeErr)
}

// ask answers as the agent at an address would.
func (w *world) ask(ctx context.Context, address string) (protocol.Facts, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	pod, runs := w.pods[address]
	if !runs {
		return protocol.Facts{}, errors.New("no agent listens at " + address)
	}
	facts, view := pod.facts, pod.server.View()
	facts.NodeID, facts.Role = string(pod.server.ID()), protocol.Role(view.Info.Role)
	return facts, w.tellDisk(ctx, &facts)
}

// dial connects to a server of this world.
func (w *world) dial(ctx context.Context, target valkey.Target) (valkey.Server, error) {
	return w.servers.Dial(ctx, target)
}
