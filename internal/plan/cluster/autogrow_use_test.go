package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
)

// What a file system takes for itself is no reason not to believe it.
func TestTheOverheadOfFileSystemsIsAccepted(t *testing.T) {
	t.Parallel()
	const mi = 1 << 20
	for what, row := range map[string]struct {
		capacity string
		total    int64
		believed bool
	}{
		"ext4 on 64Mi":                            {"64Mi", 54 * mi, true},
		"ext4 on 64Mi, without the reserve":       {"64Mi", 51 * mi, true},
		"ext4 on 128Mi":                           {"128Mi", 114 * mi, true},
		"ext4 on 1Gi":                             {"1Gi", 973 * mi, true},
		"xfs on 300Mi, its smallest":              {"300Mi", 236 * mi, true},
		"xfs on 300Mi, without the reserve":       {"300Mi", 220 * mi, true},
		"xfs on 1Gi":                              {"1Gi", 960 * mi, true},
		"xfs on 1Ti":                              {"1Ti", 1048576*mi - 2048*mi, true},
		"a device that was rounded up":            {"1Gi", 1100 * mi, true},
		"ext4 on 64Mi whose volume is 128Mi":      {"128Mi", 54 * mi, false},
		"xfs on 300Mi whose volume is 600Mi":      {"600Mi", 236 * mi, false},
		"ext4 on 1Gi whose volume is 2Gi":         {"2Gi", 973 * mi, false},
		"ext4 on 10Gi whose volume is 12Gi":       {"12Gi", 9980 * mi, false},
		"a worker's disk of twice the size":       {"1Gi", 2048 * mi, false},
		"the file system of a share of petabytes": {"1Gi", 1 << 50, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automatic()
			in.Spec.Storage.Size, auto(&in).MaxSize = sizeOf(row.capacity), sizeOf("2Ti")
			for i := range in.State.Members {
				resized(&in, i, row.capacity)
				looks(&in, i, func(d *protocol.Disk) { d.TotalBytes, d.AvailableBytes = row.total, row.total/2 })
			}
			if got := AutoGrowth(in)[0].Reason == v1alpha1.ReasonAutoArmed; got != row.believed {
				t.Errorf("believed is %t: %s", got, AutoGrowth(in)[0].Note)
			}
		})
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		edit func(*Input)
		want bool
	}{
		"half full":                                 {func(*Input) {}, false},
		"full, and the server writes":               {func(in *Input) { fill(in, 0, 100) }, false},
		"full, and the server does not":             {func(in *Input) { fill(in, 0, 100); filesOf(in, 0).WriteFailed = true }, true},
		"the server cannot write for another cause": {func(in *Input) { filesOf(in, 0).WriteFailed = true }, false},
		"nobody knows":                              {func(in *Input) { in.State.Members[0].Agent.Known = false }, false},
		"the server cannot start": {func(in *Input) {
			facts := &in.State.Members[0].Agent.Value
			facts.Server, facts.Files, facts.Message = protocol.ServerStopped, nil, "it ended with: No space left on device"
		}, true},
		"its agent keeps the server from starting until there is space": {func(in *Input) {
			facts := &in.State.Members[0].Agent.Value
			facts.Server, facts.Files, facts.Decision = protocol.ServerHeld, nil, protocol.DecisionVolumeFull
		}, true},
		"the server did not start once": {func(in *Input) { in.State.Members[0].Agent.Value.Message = "No space left on device" }, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automatic()
			row.edit(&in)
			if got := DiskFull(in.State.Members[0]); got != row.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

func TestSizingAdvice(t *testing.T) {
	t.Parallel()
	limited := func(in *Input, memory string) {
		in.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	}
	for what, row := range map[string]struct {
		edit func(*Input)
		want bool
	}{
		"no bound on memory":    {func(*Input) {}, false},
		"a limit that fits":     {func(in *Input) { limited(in, "4Gi") }, false},
		"a limit that does not": {func(in *Input) { limited(in, "5Gi") }, true},
		"a maxmemory that fits, below a limit that does not": {func(in *Input) { limited(in, "5Gi"); in.Spec.Config = config("4gb") }, false},
		"a maxmemory that does not":                          {func(in *Input) { in.Spec.Config = config("4097mb") }, true},
		"a maxmemory in decimal units":                       {func(in *Input) { in.Spec.Config = config("4G") }, false},
		"a maxmemory of none, and a limit":                   {func(in *Input) { limited(in, "5Gi"); in.Spec.Config = config("0") }, true},
		"a maxmemory of nonsense":                            {func(in *Input) { in.Spec.Config = config("lots") }, false},
		"a maxmemory that the servers tell":                  {func(in *Input) { filesOf(in, 1).MaxMemoryBytes = 5 << 30 }, true},
		"room to grow by itself":                             {func(in *Input) { limited(in, "5Gi"); auto(in).Mode = v1alpha1.AutoExpansionAuto }, false},
		"volumes that grew by themselves":                    {func(in *Input) { limited(in, "5Gi"); remember(in, "13Gi", time.Hour, false) }, false},
		"an ephemeral cluster":                               {func(in *Input) { limited(in, "5Gi"); in.Spec.Storage = nil }, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automatic()
			auto(&in).Mode = v1alpha1.AutoExpansionOff
			row.edit(&in)
			if advice, got := SizingAdvice(in); got != row.want || got != (advice != "") {
				t.Errorf("it is %t: %q", got, advice)
			}
		})
	}
}

func config(maxmemory v1alpha1.ConfigValue) map[string]v1alpha1.ConfigValue {
	return map[string]v1alpha1.ConfigValue{"maxmemory": maxmemory}
}
