// Package loopback is a CSI driver whose volumes are sparse files: each is
// attached as a loop device, formatted and mounted on the node that uses it,
// and grows while mounted. It is a real driver (provision, attach, stage,
// publish, expand, statistics) for machines that have no storage array, and it
// fails on demand.
//
// Its volumes belong to one machine: it must not be used for data that matters.
package loopback

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Pool is the directory that holds the volumes: ID.img is a volume's bytes,
// ID.json what the driver knows of it. pool.json holds the settings.
type Pool struct{ Dir string }

// volume is what ID.json holds; the controller alone writes it.
type volume struct {
	Name      string      `json:"name"`
	Claim     string      `json:"claim,omitempty"` // NAMESPACE/NAME it was made for
	FSType    string      `json:"fsType,omitempty"`
	Node      string      `json:"node,omitempty"`      // attached to
	Pinned    string      `json:"pinned,omitempty"`    // reachable from this node only
	Pool      string      `json:"pool,omitempty"`      // shares its capacity
	Limits    Limits      `json:"limits,omitzero"`     // its class'
	Grown     []time.Time `json:"grown,omitempty"`     // when it was modified
	Expanding *expansion  `json:"expanding,omitempty"` // a growth that takes its time
}

type expansion struct {
	Size  int64     `json:"size"`
	Since time.Time `json:"since"`
}

func (p Pool) image(id string) string { return filepath.Join(p.Dir, id+".img") }
func (p Pool) record(id string) string {
	return filepath.Join(p.Dir, "volumes", id+".json")
}

// get reads a volume and its size.
func (p Pool) get(id string) (v volume, size int64, err error) {
	if id == "" || strings.ContainsAny(id, "/.") {
		return v, 0, status.Errorf(codes.InvalidArgument, "bad volume id %q", id)
	}
	b, err := os.ReadFile(p.record(id))
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	st, statErr := os.Stat(p.image(id))
	if os.IsNotExist(err) || os.IsNotExist(statErr) {
		return v, 0, status.Errorf(codes.NotFound, "no volume %s", id)
	}
	if err != nil || statErr != nil {
		return v, 0, status.Errorf(codes.Internal, "volume %s: %v %v", id, err, statErr)
	}
	return v, st.Size(), nil
}

func (p Pool) put(id string, v volume) error {
	b, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(p.record(id)), 0o700)
	}
	if err == nil {
		err = writeFile(p.record(id), b)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func (p Pool) remove(id string) error {
	for _, file := range []string{p.image(id), p.record(id)} {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return status.Error(codes.Internal, err.Error())
		}
	}
	return nil
}

// promised is the sum of the volumes of a pool, one of them left out.
func (p Pool) promised(pool, except string) (sum int64) {
	files, _ := filepath.Glob(filepath.Join(p.Dir, "*.img"))
	for _, f := range files {
		id := strings.TrimSuffix(filepath.Base(f), ".img")
		if v, size, err := p.get(id); err == nil && id != except && v.Pool == pool {
			sum += size
		}
	}
	return sum
}

// room checks that a volume (id empty: a new one) may have size bytes.
func (p Pool) room(id string, v volume, l Limits, size int64) error {
	if size > l.MaxVolume.Value() {
		return status.Errorf(codes.OutOfRange, "a volume holds at most %s, not %d bytes", l.MaxVolume, size)
	}
	if promised := p.promised(v.Pool, id); promised+size > l.Capacity.Value() {
		return status.Errorf(codes.ResourceExhausted, "the pool holds %s, %d bytes are promised, no room for %d", l.Capacity, promised, size)
	}
	return nil
}

// resize makes the volume's file size bytes long; it never shrinks it.
func (p Pool) resize(id string, size int64) error {
	f, err := os.OpenFile(p.image(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && st.Size() < size {
		err = f.Truncate(size)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}
