package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
)

func TestTargetSize(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct{ size, asked, capacity, want string }{
		"no node and no claim yet":                                        {"10Gi", "", "", "10Gi"},
		"a claim and no node: the node is made with the spec's size":      {"10Gi", "", "20Gi", "10Gi"},
		"nothing changes":                                                 {"10Gi", "10Gi", "10Gi", "10Gi"},
		"a driver rounded up":                                             {"10Gi", "10Gi", "12Gi", "10Gi"},
		"it grows":                                                        {"20Gi", "10Gi", "10Gi", "20Gi"},
		"it grows while growing":                                          {"30Gi", "20Gi", "10Gi", "30Gi"},
		"a wish below a volume that has it: it stays":                     {"5Gi", "10Gi", "10Gi", "10Gi"},
		"a wish below one that was rounded up: it stays as asked":         {"5Gi", "10Gi", "12Gi", "10Gi"},
		"a growth is taken back in part":                                  {"15Gi", "20Gi", "10Gi", "15Gi"},
		"a growth is taken back in full":                                  {"10Gi", "20Gi", "10Gi", "10Gi"},
		"a growth is taken back by more than it was":                      {"5Gi", "20Gi", "10Gi", "10Gi"},
		"a claim that never got a volume: the size was wrong from birth":  {"1Gi", "100Ti", "0", "1Gi"},
		"the same amount in another notation":                             {"10240Mi", "10Gi", "10Gi", "10240Mi"},
		"less than asked, between the capacity and a size that failed":    {"11Gi", "20Gi", "12Gi", "12Gi"},
		"taken back to the same size as the capacity, in another writing": {"10240Mi", "20Gi", "10Gi", "10240Mi"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			member := state.Member{}
			if row.asked != "" {
				member.Record = &state.NodeRecord{Spec: v1alpha1.ValkeyNodeSpec{Storage: v1alpha1.NodeStorage{Size: new(resource.MustParse(row.asked))}}}
			}
			if row.capacity != "" {
				member.Claim = &state.Claim{Capacity: resource.MustParse(row.capacity)}
			}
			if got := TargetSize(resource.MustParse(row.size), member); got.Cmp(resource.MustParse(row.want)) != 0 {
				t.Errorf("it is %s, want %s", got.String(), row.want)
			}
		})
	}
}

func sized(text string) func(*Input) {
	return func(in *Input) { in.Spec.Storage.Size = new(resource.MustParse(text)) }
}

func TestSizesGiven(t *testing.T) {
	t.Parallel()
	both := []string{"settled VolumeExpanding", "apply node prod-0-0 as valkey-operator-storage", "apply node prod-0-1 as valkey-operator-storage"}
	second := []string{"settled VolumeExpanding", "apply node prod-0-1 as valkey-operator-storage"}
	judge(t, sizesGiven, map[string]row{
		"they are":                       {want: []string{"settled"}},
		"an ephemeral cluster has none":  {spec: ephemeral(1, 1), want: []string{"settled"}},
		"a larger size waits its turn":   {edit: sized("20Gi"), want: []string{"settled"}},
		"a smaller size goes to nobody":  {edit: sized("5Gi"), want: []string{"settled"}},
		"the same size, written in bits": {edit: sized("10240Mi"), want: []string{"settled"}},
		"the same size, in bytes":        {edit: sized("10737418240"), want: []string{"settled"}},
		"another retention goes to all, though a growth waits": {
			edit: func(in *Input) {
				sized("20Gi")(in)
				in.Spec.Storage.Retention.WhenDeleted = v1alpha1.RetentionDelete
			},
			want: both,
		},
		"a node that was made without its half": {
			edit: func(in *Input) { in.State.Members[1].Record.Spec.Storage.Size = nil },
			want: second,
		},
		"a node that does not exist or is on its way out": {edit: func(in *Input) {
			sized("20Gi")(in)
			in.State.Members[0].Record = nil
			in.State.Members[1].Record.Deleting = true
		}, want: []string{"settled"}},
		"an infeasible growth is taken back": {edit: func(in *Input) {
			for i := range in.State.Members {
				in.State.Members[i].Record.Spec.Storage.Size = new(resource.MustParse("100Ti"))
			}
		}, want: both},
		"a volume that has the size already": {
			edit: func(in *Input) { sized("20Gi")(in); in.State.Members[1].Claim.Capacity = resource.MustParse("20Gi") },
			want: second,
		},
		"a claim without a volume yet": {
			edit: func(in *Input) { sized("20Gi")(in); in.State.Members[1].Claim.Phase = corev1.ClaimPending },
			want: second,
		},
		"a full volume waits for nobody": {
			edit: func(in *Input) { sized("20Gi")(in); in.State.Members[1].Agent = filled(95) },
			want: second,
		},
		"a volume whose server cannot write waits for nobody": {
			edit: func(in *Input) {
				sized("20Gi")(in)
				in.State.Members[1].Agent = state.Seen(protocol.Facts{Files: &protocol.Files{WriteFailed: true}})
			},
			want: second,
		},
		"a volume that was full by its node's last word": {
			edit: func(in *Input) {
				sized("20Gi")(in)
				in.State.Members[1].Agent = state.Unknown[protocol.Facts]("silent")
				in.State.Members[1].Record.Status.Storage = &v1alpha1.NodeStorageStatus{UsedPercent: new(int32(100))}
			},
			want: second,
		},
		"a full volume of a class that cannot grow": {
			edit: func(in *Input) {
				sized("20Gi")(in)
				in.State.Members[1].Agent = filled(99)
				in.State.Classes = map[string]state.Class{"": {Exists: true}}
			},
			want: []string{"settled"},
		},
		"a full volume, and the size is known to be infeasible": {
			edit: func(in *Input) {
				sized("20Gi")(in)
				in.State.Members[1].Agent = filled(99)
				tell(in, 0, "20Gi").Claim.ResizeStatus = string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
			},
			want: []string{"settled"},
		},
		"a full volume, and the driver of another class refuses the size": {
			edit: func(in *Input) {
				sized("20Gi")(in)
				in.State.Members[1].Agent = filled(99)
				tell(in, 0, "20Gi").Claim.ResizeStatus = string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
				in.State.Members[0].Claim.ClassName = "other"
			},
			want: second,
		},
		"a full volume, and its driver gave the size to one and refused it to another": {
			spec: persistent(1, 2),
			edit: func(in *Input) {
				sized("20Gi")(in)
				in.State.Members[1].Agent = filled(99)
				tell(in, 0, "20Gi").Claim.ResizeStatus = string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
				tell(in, 2, "20Gi").Claim.Capacity = resource.MustParse("20Gi")
			},
			want: second,
		},
		"all are full, and everybody is down": {edit: func(in *Input) {
			sized("20Gi")(in)
			for i := range in.State.Members {
				in.State.Members[i].Pods, in.State.Members[i].Server.Known = nil, false
				in.State.Members[i].Agent = state.Unknown[protocol.Facts]("silent")
				in.State.Members[i].Record.Status.Storage = &v1alpha1.NodeStorageStatus{UsedPercent: new(int32(95))}
			}
		}, want: both},
	})
}

// filled is an agent whose disk is so full.
func filled(percent int64) state.Fact[protocol.Facts] {
	return state.Seen(protocol.Facts{Disk: &protocol.Disk{TotalBytes: 1000, AvailableBytes: 1000 - 10*percent}})
}

func TestSizeNotBelowCapacity(t *testing.T) {
	t.Parallel()
	judge(t, sizeNotBelowCapacity, map[string]row{
		"it is not":  {want: []string{"settled"}},
		"it is":      {edit: sized("5Gi"), want: []string{"blocked VolumeShrinkRefused"}},
		"it is more": {edit: sized("20Gi"), want: []string{"settled"}},
		"what grew by itself is no wish to shrink": {edit: func(in *Input) {
			sized("5Gi")(in)
			in.State.Status.Storage = &v1alpha1.StorageStatus{Shards: []v1alpha1.ShardStorageStatus{{AutoTarget: new(resource.MustParse("10Gi"))}}}
		}, want: []string{"settled"}},
		"the volumes that grew before others could not keep their size": {edit: func(in *Input) {
			sized("5Gi")(in)
			in.State.Status.Storage = &v1alpha1.StorageStatus{Ceiling: &v1alpha1.StorageCeiling{Size: resource.MustParse("10Gi")}}
		}, want: []string{"settled"}},
		"an ephemeral cluster": {spec: ephemeral(1, 1), want: []string{"settled"}},
		"a node without its half": {edit: func(in *Input) {
			sized("5Gi")(in)
			for i := range in.State.Members {
				in.State.Members[i].Record.Spec.Storage.Size = nil
			}
		}, want: []string{"settled"}},
	})
}
