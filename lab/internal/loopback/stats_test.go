package loopback

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// measure asks for the statistics of a volume; a directory stands for its mount.
func measure(t *testing.T, p Pool, id string) (bytes, inodes *csi.VolumeUsage, err error) {
	t.Helper()
	r, err := (&node{pool: p}).NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: p.Dir})
	if err != nil {
		return nil, nil, err
	}
	if len(r.Usage) != 2 || r.Usage[0].Unit != csi.VolumeUsage_BYTES || r.Usage[1].Unit != csi.VolumeUsage_INODES {
		t.Fatalf("the statistics are %v", r.Usage)
	}
	return r.Usage[0], r.Usage[1], nil
}

func TestStatisticsAreMeasured(t *testing.T) {
	t.Parallel()
	bytes, _, err := measure(t, pool(t, `{"stats": [{"match": "pvc-2", "missing": true}]}`), "pvc-1")
	if err != nil || bytes.Total <= 0 || bytes.Used+bytes.Available > bytes.Total {
		t.Errorf("measured %v, %v", bytes, err)
	}
	_, err = (&node{pool: pool(t, `{}`)}).NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumePath: t.TempDir() + "/gone"})
	wantCode(t, err, codes.NotFound)
}

func TestStatisticsSayWhatTheyAreTold(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		rule                   string
		total, used, available int64
	}{
		"a volume nearly full":              {`{"match": "pvc-1", "capacity": "1000", "used": "999"}`, 1000, 999, 1},
		"a lie: more is used than there is": {`{"capacity": "1000", "used": "2000"}`, 1000, 2000, 0},
		"a lie: a volume of no size":        {`{"capacity": "0", "used": "0"}`, 0, 0, 0},
		"the first that matches counts":     {`{"match": "pvc-2", "missing": true}, {"capacity": "7", "used": "3"}, {"missing": true}`, 7, 3, 4},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			bytes, _, err := measure(t, pool(t, `{"stats": [`+c.rule+`]}`), "pvc-1")
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Total != c.total || bytes.Used != c.used || bytes.Available != c.available {
				t.Errorf("told %v, want %d with %d used and %d available", bytes, c.total, c.used, c.available)
			}
		})
	}
}

func TestMissingStatisticsAreAnError(t *testing.T) {
	t.Parallel()
	_, _, err := measure(t, pool(t, `{"stats": [{"match": "pvc-1", "missing": true}]}`), "pvc-1")
	wantCode(t, err, codes.Unavailable)
}
