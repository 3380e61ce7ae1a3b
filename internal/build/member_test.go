package build_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares an object's YAML with a file of testdata.
func golden(t *testing.T, file string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-file +built); if that is meant, run the test with -update:\n%s", path, diff)
	}
}

func persistent() build.Member {
	return build.Member{
		Namespace: "shop", Name: "prod-2-1", UID: "node-uid", ClusterUID: "cluster-uid", Shape: "3x1",
		Spec: v1alpha1.ValkeyNodeSpec{
			ClusterName: "prod", ClusterID: "id-1", Shard: 2, Node: 1,
			Storage: v1alpha1.NodeStorage{
				Enabled: true, ClaimName: "valkey-prod-2-1-data", Size: new(resource.MustParse("10Gi")),
			},
			Template: v1alpha1.NodeTemplate{
				Revision: "rev-1", WorkloadType: v1alpha1.WorkloadStatefulSet,
				Image: "valkey/valkey:9.1.2", AgentImage: "valkey-operator:v1",
			},
		},
	}
}

// everything uses each field that a user can set.
func everything() build.Member {
	member := persistent()
	member.Spec.Storage.StorageClassName = new("fast")
	member.Spec.Storage.AccessModes = []v1alpha1.VolumeAccessMode{"ReadWriteOncePod"}
	member.Spec.Storage.Retention.WhenDeleted = v1alpha1.RetentionDelete
	template := &member.Spec.Template
	template.VolumePermissions = true
	template.ImagePullPolicy = corev1.PullAlways
	template.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	template.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
	}
	template.Scheduling = &v1alpha1.Scheduling{
		NodeSelector:      map[string]string{"disk": "fast"},
		Tolerations:       []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		PriorityClassName: "high",
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   "topology.kubernetes.io/zone",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
			}},
		}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"valkey.io/cluster": "prod"}},
		}},
	}
	return member
}

// apart asks for the strictest spreading, beside the user's own wishes, and for time to stop.
func apart() build.Member {
	member := everything()
	apart := v1alpha1.Placement{Spread: v1alpha1.Spread{Shard: v1alpha1.SpreadRequired}}
	member.Spec.Template.Scheduling.Node, member.Spec.Template.Scheduling.Zone = apart, apart
	member.Spec.Template.TerminationGracePeriodSeconds = new(int64(900))
	return member
}

// careless does not care where members run.
func careless() build.Member {
	member := persistent()
	careless := v1alpha1.Placement{Spread: v1alpha1.Spread{Shard: v1alpha1.SpreadDisabled}}
	member.Spec.Template.Scheduling = &v1alpha1.Scheduling{Node: careless, Zone: careless}
	return member
}

func ephemeral() build.Member {
	member := persistent()
	member.Spec.Storage = v1alpha1.NodeStorage{}
	member.Spec.Template.WorkloadType = v1alpha1.WorkloadDeployment
	return member
}

func TestMemberObjects(t *testing.T) {
	t.Parallel()
	deploymentWithVolume := persistent()
	deploymentWithVolume.Spec.Template.WorkloadType = v1alpha1.WorkloadDeployment
	stopped := persistent()
	stopped.Spec.Stopped = true
	for file, object := range map[string]any{
		"claim.yaml":                  build.Claim(persistent()),
		"claim_everything.yaml":       build.Claim(everything()),
		"statefulset.yaml":            build.Workload(persistent()),
		"statefulset_stopped.yaml":    build.Workload(stopped),
		"statefulset_everything.yaml": build.Workload(everything()),
		"statefulset_apart.yaml":      build.Workload(apart()),
		"statefulset_careless.yaml":   build.Workload(careless()),
		"deployment_ephemeral.yaml":   build.Workload(ephemeral()),
		"deployment_volume.yaml":      build.Workload(deploymentWithVolume),
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			golden(t, file, object)
		})
	}
}

// The revisions are written out: one that changed by itself would replace every
// pod of every cluster at the upgrade that changed it.
func TestTemplateRevisionIsForAllTime(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		member build.Member
		want   string
	}{
		"a plain persistent member": {persistent(), "8403f3636f60"},
		"every field set":           {everything(), "aa9a13340401"},
		"an ephemeral member":       {ephemeral(), "47e49b161aff"},
		"spread and slow to stop":   {apart(), "6faa265d7552"},
		"anywhere":                  {careless(), "df169b53c5bc"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if got := build.TemplateRevision(row.member.Spec); got != row.want {
				t.Errorf("revision is %s, was %s", got, row.want)
			}
		})
	}
}

func TestTemplateRevision(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		edit    func(*v1alpha1.ValkeyNodeSpec)
		changes bool
	}{
		"another agent image changes nothing": {func(s *v1alpha1.ValkeyNodeSpec) { s.Template.AgentImage = "valkey-operator:v2" }, false},
		"the revision itself changes nothing": {func(s *v1alpha1.ValkeyNodeSpec) { s.Template.Revision = "other" }, false},
		"a larger volume changes nothing":     {func(s *v1alpha1.ValkeyNodeSpec) { s.Storage.Size = new(resource.MustParse("1Ti")) }, false},
		"retention changes nothing":           {func(s *v1alpha1.ValkeyNodeSpec) { s.Storage.Retention.WhenDeleted = v1alpha1.RetentionDelete }, false},
		"an empty scheduling is none":         {func(s *v1alpha1.ValkeyNodeSpec) { s.Template.Scheduling = &v1alpha1.Scheduling{} }, false},
		"empty resources are none": {func(s *v1alpha1.ValkeyNodeSpec) {
			s.Template.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{}}
		}, false},
		"another image":         {func(s *v1alpha1.ValkeyNodeSpec) { s.Template.Image = "valkey/valkey:8.1.1" }, true},
		"another workload type": {func(s *v1alpha1.ValkeyNodeSpec) { s.Template.WorkloadType = v1alpha1.WorkloadDeployment }, true},
		"volume permissions":    {func(s *v1alpha1.ValkeyNodeSpec) { s.Template.VolumePermissions = true }, true},
		"another pull policy":   {func(s *v1alpha1.ValkeyNodeSpec) { s.Template.ImagePullPolicy = corev1.PullAlways }, true},
		"pull secrets": {func(s *v1alpha1.ValkeyNodeSpec) {
			s.Template.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		}, true},
		"resources": {func(s *v1alpha1.ValkeyNodeSpec) {
			s.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}, true},
		"scheduling": {func(s *v1alpha1.ValkeyNodeSpec) {
			s.Template.Scheduling = &v1alpha1.Scheduling{PriorityClassName: "high"}
		}, true},
		"spreading as it is anyway": {func(s *v1alpha1.ValkeyNodeSpec) {
			preferred := v1alpha1.Placement{Spread: v1alpha1.Spread{Shard: v1alpha1.SpreadPreferred}}
			s.Template.Scheduling = &v1alpha1.Scheduling{Node: preferred, Zone: preferred}
		}, false},
		"spreading over workers": {func(s *v1alpha1.ValkeyNodeSpec) {
			s.Template.Scheduling = &v1alpha1.Scheduling{Node: v1alpha1.Placement{Spread: v1alpha1.Spread{Shard: v1alpha1.SpreadRequired}}}
		}, true},
		"spreading over zones": {func(s *v1alpha1.ValkeyNodeSpec) {
			s.Template.Scheduling = &v1alpha1.Scheduling{Zone: v1alpha1.Placement{Spread: v1alpha1.Spread{Shard: v1alpha1.SpreadDisabled}}}
		}, true},
		"time to stop":  {func(s *v1alpha1.ValkeyNodeSpec) { s.Template.TerminationGracePeriodSeconds = new(int64(60)) }, true},
		"another claim": {func(s *v1alpha1.ValkeyNodeSpec) { s.Storage.ClaimName = "valkey-prod-2-1-data-1" }, true},
		"storage off":   {func(s *v1alpha1.ValkeyNodeSpec) { s.Storage.Enabled = false }, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			spec := persistent().Spec
			row.edit(&spec)
			changed := build.TemplateRevision(spec) != build.TemplateRevision(persistent().Spec)
			if changed != row.changes {
				t.Errorf("the revision changed: %t, want %t", changed, row.changes)
			}
		})
	}
}

// Equal amounts are equal wishes, however they are written.
func TestTemplateRevisionComparesQuantities(t *testing.T) {
	t.Parallel()
	one, other := persistent().Spec, persistent().Spec
	one.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	other.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1024Mi")}
	if build.TemplateRevision(one) != build.TemplateRevision(other) {
		t.Error("1Gi and 1024Mi give different revisions")
	}
}

// What the operator looks at to tell wishes apart it does not change.
func TestTemplateRevisionKeepsItsInput(t *testing.T) {
	t.Parallel()
	spec := persistent().Spec
	spec.Template.Scheduling = &v1alpha1.Scheduling{Node: v1alpha1.Placement{Spread: v1alpha1.Spread{Shard: v1alpha1.SpreadPreferred}}}
	build.TemplateRevision(spec)
	if got := spec.Template.Scheduling.Node.Spread.Shard; got != v1alpha1.SpreadPreferred {
		t.Errorf("the wish is %q now", got)
	}
}
