package loopback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is a failure or a delay to act out.
type Fault struct {
	// Code is the gRPC code to fail with, such as Internal; none: only delay. OK
	// lets a call through that a fault further down the list would fail.
	Code string `json:"code,omitempty"`
	// Message is the error's text; none: one that says where it comes from.
	Message string `json:"message,omitempty"`
	// Match restricts the fault to requests that contain this text, or whose
	// volume was made for a claim whose NAMESPACE/NAME contains it.
	Match string `json:"match,omitempty"`
	// Delay passes first; a call that ends meanwhile fails as it would anyway.
	Delay metav1.Duration `json:"delay,omitzero"`
	// Times is how often it is acted out, in all processes together, until the
	// settings change; 0 is for ever.
	Times int `json:"times,omitempty"`
}

// Faults of one method.
type Faults []Fault

// UnmarshalJSON reads one fault or a list.
func (f *Faults) UnmarshalJSON(b []byte) error {
	var list []Fault
	if strings.HasPrefix(strings.TrimSpace(string(b)), "[") {
		err := decode(b, &list)
		*f = list
		return err
	}
	var one Fault
	err := decode(b, &one)
	*f = Faults{one}
	return err
}

var codesByName = func() map[string]codes.Code {
	names := map[string]codes.Code{}
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		names[c.String()] = c
	}
	return names
}()

// methods are the calls that can fail.
var methods = func() map[string]bool {
	names := map[string]bool{}
	for _, service := range []grpc.ServiceDesc{csi.Identity_ServiceDesc, csi.Controller_ServiceDesc, csi.Node_ServiceDesc} {
		for _, m := range service.Methods {
			names[m.MethodName] = true
		}
	}
	return names
}()

func (f Faults) validate(method string) error {
	if !methods[method] {
		return fmt.Errorf("%q is no CSI method: write it as ControllerExpandVolume", method)
	}
	for _, fault := range f {
		if err := fault.validate(); err != nil {
			return fmt.Errorf("fault of %s: %w", method, err)
		}
	}
	return nil
}

func (f Fault) validate() error {
	switch _, known := codesByName[f.Code]; {
	case f.Code != "" && !known:
		return fmt.Errorf("%q is no gRPC code: write it as ResourceExhausted", f.Code)
	case f.Code == "" && f.Delay.Duration == 0:
		return errors.New("a fault needs a code or a delay")
	case f.Delay.Duration < 0:
		return errors.New("a delay cannot be negative")
	case f.Times < 0:
		return errors.New("times cannot be negative")
	}
	return nil
}

// actOut performs the fault that is set for a method, if one is.
func (p Pool) actOut(ctx context.Context, method string, request any) error {
	method = path.Base(method)
	s, generation, err := p.settings()
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	for i, fault := range s.Faults[method] {
		if !strings.Contains(p.describe(request), fault.Match) {
			continue
		}
		if fault.Times > 0 {
			turn, err := p.count(generation, fmt.Sprintf("%s[%d]", method, i))
			if err != nil {
				return status.Error(codes.Internal, err.Error())
			}
			if turn > fault.Times {
				continue
			}
		}
		return fault.perform(ctx, method)
	}
	return nil
}

func (f Fault) perform(ctx context.Context, method string) error {
	select {
	case <-time.After(f.Delay.Duration):
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	if f.Code == "" || f.Code == codes.OK.String() {
		return nil
	}
	message := f.Message
	if message == "" {
		message = "fault set in pool.json for " + method
	}
	return status.Error(codesByName[f.Code], message)
}

// describe is the text that a rule's match is looked for in: the request and
// the claim that its volume was made for.
func (p Pool) describe(request any) string {
	text := fmt.Sprint(request)
	switch r := request.(type) {
	case *csi.CreateVolumeRequest: // there is no volume yet that knows its claim
		text += " " + claimOf(r.Parameters)
	case interface{ GetVolumeId() string }:
		if v, _, err := p.get(r.GetVolumeId()); err == nil {
			text += " " + v.Claim
		}
	}
	return text
}

// count counts a fault's turns. The driver's processes share the count; a
// change of the settings starts it anew.
func (p Pool) count(generation, fault string) (turn int, err error) {
	f, err := os.OpenFile(filepath.Join(p.Dir, "faults.count"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close() // and with it the lock
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return 0, err
	}
	var state struct {
		Generation string
		Turns      map[string]int
	}
	// What cannot be read, such as an empty file, is a count not begun.
	if err := json.NewDecoder(f).Decode(&state); err != nil || state.Generation != generation {
		state.Generation, state.Turns = generation, map[string]int{}
	}
	state.Turns[fault]++
	b, err := json.Marshal(state)
	if err != nil {
		return 0, err
	}
	if err := f.Truncate(0); err != nil {
		return 0, err
	}
	_, err = f.WriteAt(b, 0)
	return state.Turns[fault], err
}
