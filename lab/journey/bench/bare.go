package bench

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// bareLabel selects what belongs to the bare StatefulSets.
const bareLabel = "valkey.io/bench"

var bareSelector = metav1.ListOptions{LabelSelector: bareLabel}

// bare measures as many StatefulSets of one replica as the cluster has
// members: created, all pods deleted at once, claims patched by hand.
func (p *play) bare() {
	p.times.bareCreate = append(p.times.bareCreate, p.createBare(members))
	old := map[string]bool{}
	for _, pod := range p.barePods() {
		old[string(pod.UID)] = true
	}
	begin := time.Now()
	p.NoError(p.Typed.CoreV1().Pods(p.Namespace).DeleteCollection(p.Context(), metav1.DeleteOptions{}, bareSelector), "deleting bare pods")
	p.times.bareLost = append(p.times.bareLost, p.until(begin, "bare pods ready again", func() bool { return p.readyOf(old) == members }))
	p.times.bareGrow = append(p.times.bareGrow, p.bareGrowth())
	p.deleteBare()
}

// createBare makes bare StatefulSets and returns the seconds until their pods are ready.
func (p *play) createBare(count int) float64 {
	begin := time.Now()
	for i := range count {
		_, err := p.Typed.AppsV1().StatefulSets(p.Namespace).Create(p.Context(), p.bareSet(i), metav1.CreateOptions{})
		p.NoError(err, "making a bare StatefulSet")
	}
	return p.until(begin, "bare pods ready", func() bool { return p.readyOf(nil) == count })
}

func (p *play) deleteBare() {
	sets := p.Typed.AppsV1().StatefulSets(p.Namespace)
	p.NoError(sets.DeleteCollection(p.Context(), metav1.DeleteOptions{}, bareSelector), "deleting the bare StatefulSets")
	p.until(time.Now(), "bare claims gone", func() bool { return len(p.bareClaims()) == 0 })
}

// bareGrowth patches the bare claims and returns the seconds until all have grown.
func (p *play) bareGrowth() float64 {
	want, begin := resource.MustParse(to), time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"storage":%q}}}}`, to)
	for _, claim := range p.bareClaims() {
		_, err := p.Typed.CoreV1().PersistentVolumeClaims(p.Namespace).Patch(p.Context(), claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		p.NoError(err, "patching a bare claim")
	}
	return p.until(begin, "bare claims at capacity", func() bool { return allHave(p.bareClaims(), want) })
}

// readyOf counts ready pods that are not among the old ones.
func (p *play) readyOf(old map[string]bool) int {
	n := 0
	for _, pod := range p.barePods() {
		if old[string(pod.UID)] || pod.DeletionTimestamp != nil {
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	return n
}

func (p *play) barePods() []corev1.Pod {
	list, err := p.Typed.CoreV1().Pods(p.Namespace).List(p.Context(), bareSelector)
	p.NoError(err, "listing bare pods")
	return list.Items
}

func (p *play) bareClaims() []corev1.PersistentVolumeClaim {
	list, err := p.Typed.CoreV1().PersistentVolumeClaims(p.Namespace).List(p.Context(), bareSelector)
	p.NoError(err, "listing bare claims")
	return list.Items
}

// bareSet is one Valkey server in cluster mode with a volume, probed by TCP each second.
func (p *play) bareSet(i int) *appsv1.StatefulSet {
	labels := map[string]string{bareLabel: fmt.Sprint(i)}
	claim := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: labels},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(from)}},
		},
	}
	if p.StorageClass != "" {
		claim.Spec.StorageClassName = &p.StorageClass
	}
	server := corev1.Container{
		Name: "server", Image: p.ValkeyImage(),
		Command: []string{
			"valkey-server", "--dir", "/data", "--cluster-enabled", "yes",
			"--protected-mode", "no", "--appendonly", "yes",
		},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(6379)},
		}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}},
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bare-%d", i), Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{server}}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
				WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			},
		},
	}
}
