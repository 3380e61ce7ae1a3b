package cluster

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
)

func TestAutoGrowth(t *testing.T) {
	t.Parallel()
	const gi = 1 << 30
	type edit = func(*Input)
	for group, rows := range map[string]map[string]struct {
		edit edit
		want string
	}{
		"the signal": {
			"half full":                       {func(*Input) {}, "Armed"},
			"right below the threshold":       {func(in *Input) { fill(in, 0, 79) }, "Armed"},
			"at the threshold, on a primary":  {func(in *Input) { fill(in, 0, 80) }, "Expanding 12Gi"},
			"at the threshold, on a replica":  {func(in *Input) { fill(in, 1, 80) }, "Expanding 12Gi"},
			"another threshold":               {func(in *Input) { auto(in).ThresholdPercent = 60; fill(in, 0, 60) }, "Expanding 12Gi"},
			"only the newer look is above it": {func(in *Input) { fill(in, 0, 90); in.State.Members[0].Agent.Value.DiskBefore.AvailableBytes = 5 * gi }, "Armed"},
			"only the older look is above it": {func(in *Input) { fill(in, 0, 90); in.State.Members[0].Agent.Value.Disk.AvailableBytes = 5 * gi }, "Armed"},
			"inodes run out":                  {func(in *Input) { looks(in, 1, func(d *protocol.Disk) { d.FreeInodes = 150 }) }, "Expanding 12Gi"},
			"the next rewrite will not fit":   {func(in *Input) { fill(in, 0, 60); filesOf(in, 0).NextBytes = 3 * gi }, "Expanding 12Gi"},
			"the next rewrite fits":           {func(in *Input) { filesOf(in, 0).NextBytes = 2 * gi }, "Armed"},
			"the server cannot write, and nobody knows how full it is": {func(in *Input) {
				in.State.Members[0].Agent.Value.Disk = nil
				filesOf(in, 0).WriteFailed = true
			}, "Expanding 12Gi"},
			"the server could not write an hour ago, and nobody knows how full it is": {func(in *Input) {
				in.State.Members[0].Agent.Value.Disk, in.State.Members[0].Agent.Value.AgeMillis = nil, time.Hour.Milliseconds()
				filesOf(in, 0).WriteFailed = true
			}, "NoUsageData"},
			"the server cannot write on a full disk": {func(in *Input) { fill(in, 0, 100); filesOf(in, 0).WriteFailed = true }, "Expanding 13Gi"},
			"the last rewrite failed for lack of room": {func(in *Input) {
				fill(in, 0, 60)
				*filesOf(in, 0) = protocol.Files{NextBytes: 5 * gi, RewriteFailed: true, UsedMemoryBytes: 6 * gi}
			}, "Expanding 14Gi"},
			"a start failed for lack of space, which is told in words": {func(in *Input) {
				facts := &in.State.Members[0].Agent.Value
				facts.Server, facts.Message, facts.Files, facts.Disk = protocol.ServerStopped, "the server ended: write: No space left on device", nil, nil
			}, "Expanding 12Gi"},
			"one agent is silent, the other volume is full":  {func(in *Input) { fill(in, 0, 85); in.State.Members[1].Agent.Known = false }, "Expanding 12Gi"},
			"a member that is on its way out does not count": {func(in *Input) { fill(in, 1, 99); in.State.Members[1].Wanted = false }, "Armed"},
		},
		"numbers that are not believed": {
			"an agent that does not answer": {func(in *Input) { in.State.Members[1].Agent.Known = false }, "NoUsageData"},
			"one look only":                 {func(in *Input) { fill(in, 0, 99); in.State.Members[0].Agent.Value.DiskBefore = nil }, "NoUsageData"},
			"no look at all":                {func(in *Input) { in.State.Members[0].Agent.Value = protocol.Facts{} }, "NoUsageData"},
			"the same look twice": {func(in *Input) {
				fill(in, 0, 99)
				in.State.Members[0].Agent.Value.DiskBefore = in.State.Members[0].Agent.Value.Disk
			}, "NoUsageData"},
			"looks of an hour ago": {func(in *Input) {
				fill(in, 0, 99)
				looks(in, 0, func(d *protocol.Disk) { d.SampledAt = d.SampledAt.Add(-time.Hour) })
			}, "NoUsageData"},
			"looks of tomorrow": {func(in *Input) {
				fill(in, 0, 99)
				looks(in, 0, func(d *protocol.Disk) { d.SampledAt = d.SampledAt.Add(24 * time.Hour) })
			}, "NoUsageData"},
			"a file system of no size":           {func(in *Input) { looks(in, 0, func(d *protocol.Disk) { d.TotalBytes, d.AvailableBytes = 0, 0 }) }, "NoUsageData"},
			"a file system of less than no size": {func(in *Input) { looks(in, 0, func(d *protocol.Disk) { d.TotalBytes, d.AvailableBytes = -1, -1 }) }, "NoUsageData"},
			"more available than there is":       {func(in *Input) { looks(in, 0, func(d *protocol.Disk) { d.AvailableBytes = d.TotalBytes + 1 }) }, "NoUsageData"},
			"less than nothing available":        {func(in *Input) { looks(in, 0, func(d *protocol.Disk) { d.AvailableBytes = -1 }) }, "NoUsageData"},
			"the worker's own disk, nearly full": {func(in *Input) {
				looks(in, 0, func(d *protocol.Disk) { d.TotalBytes, d.AvailableBytes = 500*gi, gi })
			}, "NoUsageData"},
			"the worker's own disk, and the server cannot write": {func(in *Input) {
				looks(in, 0, func(d *protocol.Disk) { d.TotalBytes, d.AvailableBytes = 500*gi, 0 })
				filesOf(in, 0).WriteFailed = true
			}, "NoUsageData"},
			"a file system that has yet to grow":                         {func(in *Input) { fill(in, 0, 99); resized(in, 0, "12Gi") }, "NoUsageData"},
			"a claim without a volume":                                   {func(in *Input) { resized(in, 0, "0") }, "NoUsageData"},
			"no claim":                                                   {func(in *Input) { fill(in, 0, 99); in.State.Members[0].Claim = nil }, "NoUsageData"},
			"no inodes are counted":                                      {func(in *Input) { looks(in, 0, func(d *protocol.Disk) { d.TotalInodes, d.FreeInodes = 0, 0 }) }, "Armed"},
			"more free inodes than there are":                            {func(in *Input) { looks(in, 0, func(d *protocol.Disk) { d.FreeInodes = 5000 }) }, "Armed"},
			"less than no free inodes":                                   {func(in *Input) { looks(in, 0, func(d *protocol.Disk) { d.FreeInodes = -5000 }) }, "Armed"},
			"a rewrite of more than there is":                            {func(in *Input) { filesOf(in, 0).NextBytes = math.MaxInt64 }, "Armed"},
			"a rewrite of less than nothing":                             {func(in *Input) { filesOf(in, 0).NextBytes = math.MinInt64 }, "Armed"},
			"growth by more than there is":                               {func(in *Input) { fill(in, 0, 80); filesOf(in, 0).GrowthBytes = math.MaxInt64 }, "Expanding 12Gi"},
			"growth by less than nothing":                                {func(in *Input) { fill(in, 0, 80); filesOf(in, 0).GrowthBytes = math.MinInt64 }, "Expanding 12Gi"},
			"a server that cannot write, with all the room in the world": {func(in *Input) { filesOf(in, 0).WriteFailed = true }, "Armed"},
		},
		"the step": {
			"a size":                             {func(in *Input) { auto(in).Increment = "5Gi"; fill(in, 0, 80) }, "Expanding 15Gi"},
			"a size below the unit":              {func(in *Input) { auto(in).Increment = "1Mi"; fill(in, 0, 80) }, "Expanding 11Gi"},
			"percent, rounded up":                {func(in *Input) { auto(in).Increment = "25%"; fill(in, 0, 80) }, "Expanding 13Gi"},
			"the most percent":                   {func(in *Input) { auto(in).Increment = "9999%"; fill(in, 0, 80) }, "Expanding 100Gi"},
			"no increment is its default":        {func(in *Input) { auto(in).Increment = ""; fill(in, 0, 80) }, "Expanding 12Gi"},
			"increment 0":                        {func(in *Input) { auto(in).Increment = "0"; fill(in, 0, 80) }, "Expanding 12Gi"},
			"increment 0%":                       {func(in *Input) { auto(in).Increment = "0%"; fill(in, 0, 80) }, "Expanding 12Gi"},
			"a negative increment":               {func(in *Input) { auto(in).Increment = "-5Gi"; fill(in, 0, 80) }, "Expanding 12Gi"},
			"nonsense":                           {func(in *Input) { auto(in).Increment = "NaN%"; fill(in, 0, 80) }, "Expanding 12Gi"},
			"what fills up in a cooldown":        {func(in *Input) { fill(in, 0, 80); filesOf(in, 0).GrowthBytes = gi }, "Expanding 16Gi"},
			"what brings it below the threshold": {func(in *Input) { auto(in).ThresholdPercent = 50; fill(in, 0, 90) }, "Expanding 19Gi"},
			"below one Gi, to a whole Mi": {func(in *Input) {
				in.Spec.Storage.Size = sizeOf("64Mi")
				for i := range in.State.Members {
					resized(in, i, "64Mi")
					filesOf(in, i).UsedMemoryBytes = 0
					fill(in, i, 82)
				}
			}, "Expanding 77Mi"},
			"from the largest volume of the shard": {func(in *Input) { resized(in, 1, "20Gi"); fill(in, 1, 50); fill(in, 0, 80) }, "Expanding 24Gi"},
			"to the largest size and no further":   {func(in *Input) { auto(in).MaxSize = sizeOf("11Gi"); fill(in, 0, 90) }, "Expanding 11Gi"},
		},
		"the bounds": {
			"it has the largest size":                  {func(in *Input) { auto(in).MaxSize = sizeOf("10Gi"); fill(in, 0, 90) }, "AtMaximum"},
			"it has the largest size, and has room":    {func(in *Input) { auto(in).MaxSize = sizeOf("10Gi") }, "Armed"},
			"it has more than the largest size":        {func(in *Input) { auto(in).MaxSize = sizeOf("12Gi"); resized(in, 0, "15Gi"); fill(in, 0, 90) }, "AtMaximum"},
			"the largest size is below the spec's":     {func(in *Input) { auto(in).MaxSize = sizeOf("5Gi") }, "AtMaximum"},
			"no largest size":                          {func(in *Input) { auto(in).MaxSize = nil; fill(in, 0, 90) }, "AtMaximum"},
			"the driver refused a size":                {func(in *Input) { fill(in, 0, 90); ceiling(in, "20Gi", time.Hour) }, "Expanding 12Gi"},
			"the driver refused the size that is next": {func(in *Input) { fill(in, 0, 90); ceiling(in, "12Gi", time.Hour) }, "Expanding 11Gi"},
			"the driver refused every larger size":     {func(in *Input) { fill(in, 0, 90); ceiling(in, "11Gi", time.Hour) }, "Ceiling"},
			"it refused it the day before":             {func(in *Input) { fill(in, 0, 90); ceiling(in, "11Gi", 25*time.Hour) }, "Expanding 12Gi"},
			"it refuses the growth that is under way": {func(in *Input) {
				remember(in, "12Gi", time.Hour, false)
				claim := in.State.Members[1].Claim
				claim.Requested, claim.ResizeStatus = resource.MustParse("12Gi"), string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
			}, "Ceiling"},
			"it refused what it gives now": {func(in *Input) { remember(in, "12Gi", time.Hour, false); ceiling(in, "12Gi", time.Minute) }, "Expanding"},
			"the class does not allow it": {func(in *Input) {
				fill(in, 0, 90)
				in.State.Members[0].Claim.ClassName = "fixed"
				in.State.Classes = map[string]state.Class{"fixed": {Name: "fixed", Exists: true}}
			}, "ExpansionUnsupported"},
			"the class was deleted, which tells nothing": {func(in *Input) {
				fill(in, 0, 90)
				in.State.Members[0].Claim.ClassName = "gone"
				in.State.Classes = map[string]state.Class{"gone": {Name: "gone"}}
			}, "Expanding 12Gi"},
		},
		"the pace": {
			"decided a moment ago, and nothing has happened yet": {func(in *Input) { fill(in, 0, 90); remember(in, "12Gi", time.Second, false) }, "Expanding"},
			"one of two volumes has grown": {func(in *Input) {
				fill(in, 0, 90)
				remember(in, "12Gi", time.Minute, false)
				resized(in, 1, "12Gi")
				fill(in, 1, 70)
			}, "Expanding"},
			"the user makes them grow":      {func(in *Input) { fill(in, 0, 90); in.Spec.Storage.Size = sizeOf("11Gi") }, "Expanding"},
			"it grew by itself an hour ago": {func(in *Input) { grown(in, "12Gi"); remember(in, "12Gi", time.Hour, false); fill(in, 0, 85) }, "Cooldown"},
			"it grew a day from now, by a clock that was wrong": {func(in *Input) {
				grown(in, "12Gi")
				remember(in, "12Gi", -24*time.Hour, true)
				grewAgo(in, 1, -24*time.Hour)
				fill(in, 0, 85)
			}, "Expanding 15Gi"},
			"it grew by itself seven hours ago":     {func(in *Input) { grown(in, "12Gi"); remember(in, "12Gi", 7*time.Hour, false); fill(in, 0, 85) }, "Expanding 15Gi"},
			"the user made it grow an hour ago":     {func(in *Input) { grewAgo(in, 1, time.Hour); fill(in, 0, 85) }, "Cooldown"},
			"the user made it grow seven hours ago": {func(in *Input) { grewAgo(in, 1, 7*time.Hour); fill(in, 0, 85) }, "Expanding 12Gi"},
			"it has grown, and the older look is from before": {func(in *Input) {
				grown(in, "12Gi")
				remember(in, "12Gi", time.Minute, false)
				grewAgo(in, 0, time.Second)
				in.State.Members[0].Agent.Value.DiskBefore.TotalBytes = 10 << 30
			}, "Expanding"},
			"it has grown, which nobody has told yet": {func(in *Input) {
				grown(in, "12Gi")
				remember(in, "12Gi", time.Minute, false)
				in.State.Status.Storage.ExpandingSince = at(noon.Add(-time.Minute))
				in.State.Members[0].Agent.Value.DiskBefore.TotalBytes = 10 << 30
			}, "Expanding"},
			"no cooldown": {func(in *Input) { auto(in).Cooldown = metav1.Duration{}; grewAgo(in, 1, time.Second); fill(in, 0, 85) }, "Expanding 12Gi"},
			"a negative cooldown is the default": {func(in *Input) {
				auto(in).Cooldown = metav1.Duration{Duration: -time.Hour}
				grewAgo(in, 1, 5*time.Hour)
				fill(in, 0, 85)
			}, "Cooldown"},
			"about to be full within the cooldown":    {func(in *Input) { grewAgo(in, 1, time.Hour); fill(in, 0, 96) }, "Expanding 13Gi emergency"},
			"cannot write within the cooldown":        {func(in *Input) { grewAgo(in, 1, time.Hour); fill(in, 0, 100); filesOf(in, 0).WriteFailed = true }, "Expanding 13Gi emergency"},
			"a second emergency within the cooldown":  {func(in *Input) { grown(in, "12Gi"); remember(in, "12Gi", time.Hour, true); fill(in, 0, 99) }, "Cooldown"},
			"an emergency after the cooldown is none": {func(in *Input) { grown(in, "12Gi"); remember(in, "12Gi", 7*time.Hour, true); fill(in, 0, 99) }, "Expanding 16Gi"},
			"a predicted peak is no emergency":        {func(in *Input) { grewAgo(in, 1, time.Hour); fill(in, 0, 60); filesOf(in, 0).NextBytes = 4 * gi }, "Cooldown"},
		},
		"thresholds that mean nothing": {
			"below 50":                   {func(in *Input) { auto(in).ThresholdPercent = 10 }, "Armed"},
			"above 99":                   {func(in *Input) { auto(in).ThresholdPercent = 400; fill(in, 0, 85) }, "Expanding 12Gi"},
			"an emergency below it":      {func(in *Input) { auto(in).EmergencyPercent = 60; grewAgo(in, 1, time.Hour); fill(in, 0, 75) }, "Armed"},
			"an emergency that is unset": {func(in *Input) { auto(in).EmergencyPercent = 0; grewAgo(in, 1, time.Hour); fill(in, 0, 90) }, "Cooldown"},
		},
		"recommending": {
			"half full":                           {recommending, "Armed"},
			"nearly full":                         {func(in *Input) { recommending(in); fill(in, 0, 85) }, "Recommending 12Gi"},
			"nearly full, a short while after":    {func(in *Input) { recommending(in); grewAgo(in, 0, time.Minute); fill(in, 0, 85) }, "Recommending 12Gi"},
			"nearly full, without a largest size": {func(in *Input) { recommending(in); auto(in).MaxSize = nil; fill(in, 0, 85) }, "Recommending 12Gi"},
			"a long log is none of its business":  {func(in *Input) { recommending(in); longLogged(in, 0) }, "Recommending 13Gi"},
		},
		"a long log": {
			"is rewritten first":             {func(in *Input) { longLogged(in, 0) }, "Armed shorten prod-0-0"},
			"is being rewritten":             {func(in *Input) { longLogged(in, 0); filesOf(in, 0).Writing, filesOf(in, 0).NextBytes = true, 0 }, "Armed"},
			"of two members":                 {func(in *Input) { longLogged(in, 0); longLogged(in, 1) }, "Armed shorten prod-0-0 shorten prod-0-1"},
			"of one, the other is just full": {func(in *Input) { longLogged(in, 0); fill(in, 1, 85) }, "Expanding 13Gi"},
			"is short enough":                {func(in *Input) { longLogged(in, 0); filesOf(in, 0).LogBaseBytes = 4 * gi }, "Expanding 13Gi"},
			"the last rewrite failed":        {func(in *Input) { longLogged(in, 0); filesOf(in, 0).RewriteFailed = true }, "Expanding 13Gi"},
			"there is no room for a rewrite": {func(in *Input) { longLogged(in, 0); fill(in, 0, 92) }, "Expanding 13Gi"},
			"it would not be enough":         {func(in *Input) { longLogged(in, 0); filesOf(in, 0).LogBytes = 2*gi + 1 }, "Expanding 13Gi"},
			"the disk is about to be full":   {func(in *Input) { longLogged(in, 0); filesOf(in, 0).NextBytes = 1 << 20; fill(in, 0, 96) }, "Expanding 13Gi"},
			"a log of more than there is":    {func(in *Input) { longLogged(in, 0); filesOf(in, 0).LogBytes = math.MaxInt64 }, "Expanding 13Gi"},
		},
	} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for what, row := range rows {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					in := automatic()
					row.edit(&in)
					decides(t, in, row.want)
				})
			}
		})
	}
}

// decides expects a growth, with a reason, and the same one when asked again.
func decides(t *testing.T, in Input, want string) {
	t.Helper()
	growths := AutoGrowth(in)
	if len(growths) != 1 || inShort(growths[0]) != want {
		t.Fatalf("it is %+v, want %q", growths, want)
	}
	if growths[0].Note == "" {
		t.Error("it does not say why")
	}
	if again := AutoGrowth(in); !reflect.DeepEqual(growths, again) {
		t.Errorf("asked again it says %+v", again)
	}
}

func TestAutoGrowthIsOffUnlessItIsOn(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(*Input){
		"off":               func(in *Input) { auto(in).Mode = v1alpha1.AutoExpansionOff },
		"of no mode":        func(in *Input) { auto(in).Mode = "" },
		"absent":            func(in *Input) { in.Spec.Storage.AutoExpansion = nil },
		"without storage":   func(in *Input) { in.Spec.Storage.Enabled = false },
		"ephemeral":         func(in *Input) { in.Spec.Storage = nil },
		"on its way out":    func(in *Input) { in.State.Deleting = true },
		"of a mode to come": func(in *Input) { auto(in).Mode = "Magic" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automatic()
			fill(&in, 0, 100)
			edit(&in)
			if growths := AutoGrowth(in); len(growths) != 0 {
				t.Errorf("it decides %+v", growths)
			}
		})
	}
}

func TestLogsShort(t *testing.T) {
	t.Parallel()
	in := automatic()
	verdict := logsShort(in)
	if len(verdict.Actions) != 0 || verdict.Look != protocol.SampleInterval {
		t.Errorf("while it is armed it wants %v and looks again after %s", verdict.Actions, verdict.Look)
	}
	longLogged(&in, 1)
	verdict = logsShort(in)
	noted(t, verdict)
	if got := fmt.Sprint(verdict.Actions); got != "[rewrite the log of node prod-0-1]" {
		t.Errorf("it wants %s", got)
	}
	in.State.Members[1].Server.Known = false
	if verdict = logsShort(in); len(verdict.Actions) != 0 {
		t.Errorf("of a server that does not answer it wants %v", verdict.Actions)
	}
	auto(&in).Mode = v1alpha1.AutoExpansionOff
	if verdict = logsShort(in); len(verdict.Actions) != 0 || verdict.Look != 0 {
		t.Errorf("while it is off it wants %v and looks again after %s", verdict.Actions, verdict.Look)
	}
}

// A volume at the edge of its threshold does not change what is said of it with
// every look.
func TestAVolumeAtTheEdgeIsToldOnce(t *testing.T) {
	t.Parallel()
	in := automatic()
	grewAgo(&in, 0, time.Hour)
	fill(&in, 0, 80)
	first := AutoGrowth(in)[0]
	in.State.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAutoExpansion, Status: metav1.ConditionFalse, Reason: first.Reason}}
	for percent, want := range map[int64]string{79: "Cooldown", 78: "Cooldown", 77: "Armed"} {
		fill(&in, 0, percent)
		growth := AutoGrowth(in)[0]
		if got := inShort(growth); got != want {
			t.Errorf("at %d%% it is %s, want %s", percent, got, want)
		}
		if want == "Cooldown" && growth.Note != first.Note {
			t.Errorf("at %d%% it says %q, and said %q", percent, growth.Note, first.Note)
		}
	}
	grewAgo(&in, 0, 7*time.Hour)
	fill(&in, 0, 79)
	if got := inShort(AutoGrowth(in)[0]); got != "Armed" {
		t.Errorf("below the threshold, after the cooldown, it is %s", got)
	}
}

// Two full volumes take turns in being the fullest: the words stay the same, or each
// look would write a status.
func TestTurnsInBeingTheFullestAreNotTold(t *testing.T) {
	t.Parallel()
	in := automatic()
	auto(&in).MaxSize = sizeOf("10Gi")
	notes := map[string]bool{}
	for first := range 2 {
		fill(&in, first, 91)
		fill(&in, 1-first, 90)
		notes[AutoGrowth(in)[0].Note] = true
	}
	if len(notes) != 1 {
		t.Errorf("it says %v", notes)
	}
}
