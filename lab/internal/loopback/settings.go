package loopback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Settings are what pool.json holds. They are read at each call, so a test can
// turn them while the driver runs. What is not set has its default.
type Settings struct {
	// Limits of every volume whose class or pool does not say otherwise.
	Limits `json:",inline"`
	// Pools override the limits of the volumes in a named pool (the class
	// parameter "pool"), whatever their class says.
	Pools map[string]Limits `json:"pools,omitempty"`
	// Faults by the CSI method's name, such as ControllerExpandVolume; one
	// fault or a list, of which the first that applies is acted out.
	Faults map[string]Faults `json:"faults,omitempty"`
	// Stats changes what NodeGetVolumeStats answers.
	Stats []StatsRule `json:"stats,omitempty"`
	// Fill leaves volumes without room, once for each volume that matches: a
	// file takes the room until the rule is gone. A volume that grows
	// afterwards has room again.
	Fill []FillRule `json:"fill,omitempty"`
}

// Limits are the properties of a storage system.
type Limits struct {
	// Capacity is what all volumes of a pool together may promise; beyond it
	// creating or growing fails with ResourceExhausted (worth retrying).
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// MaxVolume is the most that one volume may hold; beyond it the answer is
	// OutOfRange (infeasible).
	MaxVolume *resource.Quantity `json:"maxVolume,omitempty"`
	// RoundUp is the unit that sizes are rounded up to.
	RoundUp *resource.Quantity `json:"roundUp,omitempty"`
	// ExpandDelay is how long the controller's part of a growth takes. A call
	// that ends earlier fails with DeadlineExceeded; the growth goes on.
	ExpandDelay *metav1.Duration `json:"expandDelay,omitempty"`
	// OfflineOnly refuses to grow a volume that is attached to a node, with
	// FailedPrecondition.
	OfflineOnly *bool `json:"offlineOnly,omitempty"`
	// ModificationsPerPeriod limits how often one volume may grow.
	ModificationsPerPeriod *Rate `json:"modificationsPerPeriod,omitempty"`
	// RootOwner is the owner of the volume's root directory, as UID:GID, set
	// each time the volume is staged on a node. (A pod's fsGroup is applied by
	// the kubelet after that.)
	RootOwner *Owner `json:"rootOwner,omitempty"`
}

// Rate is a number of modifications in a period, as some providers allow.
type Rate struct {
	N      int             `json:"n"`
	Period metav1.Duration `json:"period"`
}

// Owner is a user and a group, as numbers.
type Owner struct{ UID, GID int }

// UnmarshalText reads UID:GID.
func (o *Owner) UnmarshalText(b []byte) error {
	uid, gid, ok := strings.Cut(string(b), ":")
	var err1, err2 error
	o.UID, err1 = strconv.Atoi(uid)
	o.GID, err2 = strconv.Atoi(gid)
	if !ok || err1 != nil || err2 != nil || o.UID < 0 || o.GID < 0 {
		return fmt.Errorf("an owner is UID:GID in numbers, not %q", b)
	}
	return nil
}

// MarshalText writes UID:GID.
func (o Owner) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d:%d", o.UID, o.GID), nil }

func defaults() Limits {
	// Sparse files: room is taken as it is written, not as it is promised.
	capacity, maxVolume, roundUp := resource.MustParse("24Gi"), resource.MustParse("8Gi"), resource.MustParse("1Mi")
	return Limits{Capacity: &capacity, MaxVolume: &maxVolume, RoundUp: &roundUp, ExpandDelay: &metav1.Duration{}}
}

// over lays limits on top of others: what it sets wins.
func (l Limits) over(base Limits) Limits {
	return Limits{
		Capacity:               first(l.Capacity, base.Capacity),
		MaxVolume:              first(l.MaxVolume, base.MaxVolume),
		RoundUp:                first(l.RoundUp, base.RoundUp),
		ExpandDelay:            first(l.ExpandDelay, base.ExpandDelay),
		OfflineOnly:            first(l.OfflineOnly, base.OfflineOnly),
		ModificationsPerPeriod: first(l.ModificationsPerPeriod, base.ModificationsPerPeriod),
		RootOwner:              first(l.RootOwner, base.RootOwner),
	}
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// limits of one volume: the defaults, pool.json's, its class', its pool's in
// pool.json; the later wins.
func (s Settings) limits(v volume) Limits {
	return s.Pools[v.Pool].over(v.Limits.over(s.over(defaults())))
}

func parseSettings(b []byte) (Settings, error) {
	var s Settings
	if err := decode(b, &s); err != nil {
		return s, fmt.Errorf("pool.json: %w", err)
	}
	return s, s.validate()
}

// decode reads one JSON value and refuses what it does not know: a knob that
// is misspelt would turn nothing.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

func (s Settings) validate() error {
	errs := []error{s.Limits.validate()}
	for _, l := range s.Pools {
		errs = append(errs, l.validate())
	}
	for method, faults := range s.Faults {
		errs = append(errs, faults.validate(method))
	}
	for _, rule := range s.Stats {
		errs = append(errs, rule.validate())
	}
	for _, rule := range s.Fill {
		errs = append(errs, rule.validate())
	}
	return errors.Join(errs...)
}

func (l Limits) validate() error {
	for name, q := range map[string]*resource.Quantity{"capacity": l.Capacity, "maxVolume": l.MaxVolume, "roundUp": l.RoundUp} {
		if q != nil && q.Value() <= 0 {
			return fmt.Errorf("%s must be more than nothing", name)
		}
	}
	if r := l.ModificationsPerPeriod; r != nil && (r.N < 1 || r.Period.Duration <= 0) {
		return fmt.Errorf("modificationsPerPeriod needs n of at least 1 and a period")
	}
	return nil
}

// classLimits reads the parameters of a StorageClass: the limits' own names,
// with modificationsPerPeriod written as N/PERIOD.
func classLimits(parameters map[string]string) (Limits, error) {
	fields := map[string]any{}
	for key, value := range parameters {
		switch key {
		case "capacity", "maxVolume", "roundUp", "expandDelay", "rootOwner":
			fields[key] = value
		case "offlineOnly":
			offline, err := strconv.ParseBool(value)
			if err != nil {
				return Limits{}, fmt.Errorf("offlineOnly is true or false, not %q", value)
			}
			fields[key] = offline
		case "modificationsPerPeriod":
			n, period, _ := strings.Cut(value, "/")
			number, err := strconv.Atoi(n)
			if err != nil {
				return Limits{}, fmt.Errorf("modificationsPerPeriod is N/PERIOD, not %q", value)
			}
			fields[key] = map[string]any{"n": number, "period": period}
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return Limits{}, err
	}
	var l Limits
	if err := json.Unmarshal(b, &l); err != nil {
		return Limits{}, fmt.Errorf("StorageClass parameters: %w", err)
	}
	return l, l.validate()
}

func (p Pool) settingsFile() string { return filepath.Join(p.Dir, "pool.json") }

// settings in force, and their generation: another for each change of the file.
func (p Pool) settings() (s Settings, generation string, err error) {
	f, err := os.Open(p.settingsFile())
	if os.IsNotExist(err) {
		return Settings{}, "", nil
	}
	if err != nil {
		return s, "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return s, "", err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return s, "", err
	}
	s, err = parseSettings(b)
	// The time is coarse: two changes in a moment differ by the inode.
	return s, fmt.Sprintf("%d-%d", st.Ino, st.Mtim.Nano()), err
}

// Set replaces the settings, all at once; {} is back to the defaults.
func (p Pool) Set(b []byte) error {
	if _, err := parseSettings(b); err != nil {
		return err
	}
	return writeFile(p.settingsFile(), b)
}

// Describe is the settings with the defaults filled in, as JSON.
func (p Pool) Describe() ([]byte, error) {
	s, _, err := p.settings()
	if err != nil {
		return nil, err
	}
	s.Limits = s.over(defaults())
	return json.MarshalIndent(s, "", "  ")
}

func writeFile(path string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
