package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// tick lets the world do what it has to do, once. It says whether anything moved.
func (w *world) tick() bool {
	moved := false
	for _, step := range []func() bool{w.reap, w.makePods, w.bindClaims, w.startPods, w.growClaims, w.judgeReadiness, w.changeMind} {
		moved = step() || moved
	}
	w.servers.Step()
	w.ticks++
	return moved
}

// makePods gives each workload its one pod, or takes it away.
func (w *world) makePods() bool {
	made := w.endUnwanted()
	for _, object := range append(w.list(&appsv1.StatefulSetList{}), w.list(&appsv1.DeploymentList{})...) {
		template, replicas := templateOf(object)
		if replicas == 0 || w.barren {
			continue
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: podOf(object), Labels: template.Labels, Annotations: template.Annotations, CreationTimestamp: metav1.NewTime(w.now()),
			},
			Spec: template.Spec,
		}
		err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			w.must(w.api.Create(w.t.Context(), pod))
			pod.Status.Phase = corev1.PodPending
			err, made = w.api.Status().Update(w.t.Context(), pod), true
		}
		w.must(err)
	}
	return made
}

// templateOf is a workload's template, and how many pods it shall have.
func templateOf(object client.Object) (corev1.PodTemplateSpec, int32) {
	switch workload := object.(type) {
	case *appsv1.StatefulSet:
		return workload.Spec.Template, *workload.Spec.Replicas
	case *appsv1.Deployment:
		return workload.Spec.Template, *workload.Spec.Replicas
	default:
		return corev1.PodTemplateSpec{}, 0
	}
}

func podOf(workload client.Object) string { return workload.GetName() + "-0" }

// endUnwanted ends the pods of workloads that shall have none, and those of an older
// template. As a StatefulSet may, each waits for its pod to be ready before it
// replaces it, for ever if need be.
func (w *world) endUnwanted() bool {
	unwanted := map[string]bool{}
	for _, object := range append(w.list(&appsv1.StatefulSetList{}), w.list(&appsv1.DeploymentList{})...) {
		template, replicas := templateOf(object)
		pod := &corev1.Pod{}
		if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: podOf(object)}, pod); err != nil {
			continue
		}
		replaced := pod.Annotations[name.AnnotationTemplateRevision] != template.Annotations[name.AnnotationTemplateRevision]
		_, isSet := object.(*appsv1.StatefulSet)
		unwanted[pod.Name] = replicas == 0 || replaced && (ready(pod) || !isSet)
	}
	var ended []*corev1.Pod
	for _, object := range w.list(&corev1.PodList{}) {
		if pod, is := object.(*corev1.Pod); is && unwanted[pod.Name] {
			ended = append(ended, pod)
		}
	}
	w.checkStops(ended)
	w.endPods(func(pod *corev1.Pod) bool { return unwanted[pod.Name] })
	return len(ended) > 0
}

func ready(pod *corev1.Pod) bool {
	return len(pod.Status.Conditions) == 1 && pod.Status.Conditions[0].Status == corev1.ConditionTrue
}

// reap ends the servers whose pods were deleted.
func (w *world) reap() bool {
	pods := map[string]bool{}
	for _, object := range w.list(&corev1.PodList{}) {
		if pod, is := object.(*corev1.Pod); is {
			pods[pod.Status.PodIP] = true
		}
	}
	reaped := false
	for ip, at := range w.live {
		if !pods[ip] {
			w.servers.Nodes()[at.server].Kill()
			delete(w.live, ip)
			reaped = true
		}
	}
	return reaped
}

// claimOf is the claim that a pod mounts; nil when it needs none or has none yet.
func (w *world) claimOf(pod *corev1.Pod) *corev1.PersistentVolumeClaim {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: namespace, Name: volume.PersistentVolumeClaim.ClaimName}
		if err := w.api.Get(w.t.Context(), key, claim); err == nil {
			return claim
		}
	}
	return nil
}

func needsClaim(pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			return true
		}
	}
	return false
}

// bindClaims gives a claim its volume once a pod wants it.
func (w *world) bindClaims() bool {
	bound := false
	for _, object := range w.list(&corev1.PodList{}) {
		pod, _ := object.(*corev1.Pod)
		claim := w.claimOf(pod)
		if claim == nil || claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		claim.Spec.VolumeName = "volume-of-" + claim.Name
		w.must(w.api.Update(w.t.Context(), claim))
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Capacity = claim.Spec.Resources.Requests.DeepCopy()
		w.must(w.api.Status().Update(w.t.Context(), claim))
		bound = true
	}
	return bound
}

// growClaims grows volumes in two steps, as the resizer and the kubelet do.
func (w *world) growClaims() bool {
	grown := false
	used := w.usedClaims()
	for _, object := range w.list(&corev1.PersistentVolumeClaimList{}) {
		claim, _ := object.(*corev1.PersistentVolumeClaim)
		if claim.Status.Phase != corev1.ClaimBound || claim.Spec.Resources.Requests.Storage().Cmp(*claim.Status.Capacity.Storage()) <= 0 {
			continue
		}
		before := claim.Status.DeepCopy()
		w.growClaim(claim, used[claim.Name])
		if equality.Semantic.DeepEqual(*before, claim.Status) {
			continue
		}
		w.must(w.api.Status().Update(w.t.Context(), claim))
		grown = true
	}
	return grown
}

// infeasible says whether the driver can never give what it was asked for last.
func infeasible(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimControllerResizeInfeasible
}

// answer writes what became of the size that a claim asks for now.
func answer(claim *corev1.PersistentVolumeClaim, status corev1.ClaimResourceStatus) {
	claim.Status.AllocatedResources = claim.Spec.Resources.Requests.DeepCopy()
	claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
}

// changeMind has the user ask for another size, once told that the one asked for
// cannot be had.
func (w *world) changeMind() bool {
	told := meta.FindStatusCondition(w.cluster().Status.Conditions, v1alpha1.ConditionStorageReady)
	if w.instead == "" || told == nil || told.Reason != v1alpha1.ReasonExpansionInfeasible {
		return false
	}
	w.resize(w.instead)
	w.instead = ""
	return true
}

// growClaim does the next step of a claim's growth: the driver's or the kubelet's,
// which needs a pod that uses the volume.
func (w *world) growClaim(claim *corev1.PersistentVolumeClaim, used bool) {
	conditions := claim.Status.Conditions
	pending := len(conditions) == 1 && conditions[0].Type == corev1.PersistentVolumeClaimFileSystemResizePending
	switch {
	case pending && used:
		claim.Status.Conditions, claim.Status.AllocatedResourceStatuses = nil, nil
		claim.Status.Capacity = claim.Spec.Resources.Requests.DeepCopy()
	case !pending:
		w.drive(claim, used)
	}
}

// drive does what the driver does about a claim. It refuses a volume in use, if it
// is such a one, and for good what is more than it has.
func (w *world) drive(claim *corev1.PersistentVolumeClaim, used bool) {
	is := func(kind corev1.PersistentVolumeClaimConditionType, message string) {
		claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: kind, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: metav1.NewTime(w.now()),
		}}
	}
	tooLarge := !w.most.IsZero() && claim.Spec.Resources.Requests.Storage().Cmp(w.most) > 0
	switch {
	case tooLarge && infeasible(claim):
	case tooLarge:
		is(corev1.PersistentVolumeClaimControllerResizeError, "rpc error: code = OutOfRange desc = too large")
		answer(claim, corev1.PersistentVolumeClaimControllerResizeInfeasible)
	case infeasible(claim):
		claim.Status.Conditions = nil
		answer(claim, corev1.PersistentVolumeClaimControllerResizeInProgress)
	case w.offline && used && len(claim.Status.Conditions) == 0:
		is(corev1.PersistentVolumeClaimControllerResizeError, "rpc error: code = FailedPrecondition desc = the volume is in use")
	case !w.idle(used):
		is(corev1.PersistentVolumeClaimFileSystemResizePending, "")
	}
}

// idle says whether the driver does nothing more about a volume.
func (w *world) idle(used bool) bool { return used && w.offline || !used && w.asleep }

// usedClaims are the claims that some pod names, whether it runs or not.
func (w *world) usedClaims() map[string]bool {
	used := map[string]bool{}
	for _, object := range w.list(&corev1.PodList{}) {
		pod, _ := object.(*corev1.Pod)
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				used[volume.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	return used
}

// startPods gives the next pod with its volume an address and a server: pods
// start one after the other, so that whatever can be done meanwhile is done.
func (w *world) startPods() bool {
	for _, object := range w.list(&corev1.PodList{}) {
		pod, _ := object.(*corev1.Pod)
		claim := w.claimOf(pod)
		if pod.Status.PodIP != "" || needsClaim(pod) && (claim == nil || claim.Status.Phase != corev1.ClaimBound) {
			continue
		}
		if pod.Spec.Containers[0].Image == brokenImage {
			if w.fail(pod) {
				return true
			}
			continue
		}
		settings := w.fileOf(pod)
		if w.refuses(pod, settings) {
			continue
		}
		w.serve(pod, claim, settings)
		return true
	}
	return false
}

// serve gives a pod an address and a server on its volume, with its settings.
func (w *world) serve(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, settings map[string]string) {
	w.addresses++
	ip := fmt.Sprintf("10.0.%d.%d", w.addresses/250, w.addresses%250+1)
	volume := string(pod.UID)
	if claim != nil {
		volume = string(claim.UID)
	}
	address := netip.AddrPortFrom(netip.MustParseAddr(ip), name.PortClient).String()
	if place, used := w.volumes[volume]; used {
		w.servers.Nodes()[place].Start(valkeytest.Start{Address: address, Settings: settings})
	} else {
		w.volumes[volume] = len(w.servers.Nodes())
		server := w.servers.Add(address)
		server.Kill() // it was started without its file
		server.Start(valkeytest.Start{Data: valkeytest.Blank, Settings: settings})
	}
	w.live[ip] = seatOf(pod, w.volumes[volume])
	pod.Status.PodIP, pod.Status.Phase = ip, corev1.PodRunning
	w.must(w.api.Status().Update(w.t.Context(), pod))
}

// brokenImage is one that no registry has.
const brokenImage = "valkey/valkey:broken"

// fail has a pod's worker say that it cannot start it, once.
func (w *world) fail(pod *corev1.Pod) bool {
	if len(pod.Status.ContainerStatuses) > 0 {
		return false
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "server", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "there is no such image"},
	}}}
	w.must(w.api.Status().Update(w.t.Context(), pod))
	return true
}

// judgeReadiness keeps the pods' conditions as their agents would have them.
func (w *world) judgeReadiness() bool {
	changed := false
	for _, object := range w.list(&corev1.PodList{}) {
		pod, _ := object.(*corev1.Pod)
		at, lives := w.live[pod.Status.PodIP]
		if !lives {
			continue
		}
		view := w.servers.Nodes()[at.server].View()
		link := view.Info.Replication.Primary
		want := corev1.ConditionFalse
		if view.Cluster.StateOK && (link == nil || link.Up) {
			want = corev1.ConditionTrue
		}
		if len(pod.Status.Conditions) == 1 && pod.Status.Conditions[0].Status == want {
			continue
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: want}}
		w.must(w.api.Status().Update(w.t.Context(), pod))
		changed = true
	}
	return changed
}

// endPods ends pods at once, and their servers.
func (w *world) endPods(which func(pod *corev1.Pod) bool) {
	w.t.Helper()
	for _, object := range w.list(&corev1.PodList{}) {
		pod, _ := object.(*corev1.Pod)
		if !which(pod) {
			continue
		}
		if at, lives := w.live[pod.Status.PodIP]; lives {
			w.servers.Nodes()[at.server].Kill()
			delete(w.live, pod.Status.PodIP)
		}
		w.must(w.api.Delete(w.t.Context(), pod))
	}
}

// nodeOfPod is the name of the ValkeyNode that a pod is of.
func nodeOfPod(pod *corev1.Pod) string {
	return clusterName + "-" + pod.Labels[name.LabelShardIndex] + "-" + pod.Labels[name.LabelNodeIndex]
}

var errNobody = errors.New("nobody listens there")

// ask is what the agent at an address says.
func (w *world) ask(ctx context.Context, address string) (protocol.Facts, error) {
	at, lives := w.live[address]
	if !lives {
		return protocol.Facts{}, errNobody
	}
	myself, _ := w.servers.Nodes()[at.server].View().Myself()
	facts := protocol.Facts{
		ClusterID: at.clusterID, Shard: at.shard, Node: at.node,
		NodeID: string(myself.ID), Role: protocol.RolePrimary, ConfigEpoch: myself.ConfigEpoch,
		Server: protocol.ServerRunning, Decision: protocol.DecisionStart,
	}
	w.tellDisk(ctx, &facts)
	if myself.Flags.Replica {
		facts.Role = protocol.RoleReplica
	}
	facts.OwnsSlots = protocol.No
	if !myself.Slots.IsEmpty() {
		facts.OwnsSlots = protocol.Yes
	}
	return facts, nil
}

// seatOf is what a pod's command tells its agent.
func seatOf(pod *corev1.Pod, server int) seat {
	at := seat{server: server}
	words := pod.Spec.Containers[0].Command
	for i, word := range words {
		switch word {
		case "--cluster-id":
			at.clusterID = words[i+1]
		case "--shard":
			at.shard, _ = strconv.Atoi(words[i+1])
		case "--node":
			at.node, _ = strconv.Atoi(words[i+1])
		}
	}
	return at
}
