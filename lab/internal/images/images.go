// Package images puts the lab's own images into its registry: the pause
// program, CoreDNS, and Valkey from Debian's packages.
//
// An image is made again only when what it is made of has changed; the pins
// file says what that was.
package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"valkey.io/valkey-operator/lab/internal/debian"
	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/internal/registry"
)

// References of the lab's own images.
const (
	Pause   = "docker.io/lab/pause:1"
	CoreDNS = "docker.io/lab/coredns:1"
)

// Pin says what an image was made of.
type Pin struct {
	Refs   []string `json:"refs"`
	From   string   `json:"from"`   // in words
	Source string   `json:"source"` // digest of what it was made of
	Digest string   `json:"digest"` // the image's
}

// Pins are the images in the registry that the lab made itself.
type Pins []Pin

func pinsFile(h home.Home) string { return h.State("images.pins") }

// ReadPins reads the pins of a lab; none yet is no error.
func ReadPins(h home.Home) (Pins, error) {
	b, err := os.ReadFile(pinsFile(h))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p Pins
	err = json.Unmarshal(b, &p)
	return p, err
}

func (p Pins) write(h home.Home) error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	tmp := pinsFile(h) + ".tmp"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, pinsFile(h))
}

// String is one line for each image.
func (p Pins) String() string {
	var b strings.Builder
	for _, pin := range p {
		fmt.Fprintf(&b, "  %-36s %s  %.19s\n", pin.Refs[0], pin.From, pin.Digest)
	}
	return b.String()
}

// recipe is an image to make.
type recipe struct {
	refs   []string
	from   string
	source string
	path   string
	config v1.Config
}

// Ensure makes the images that are missing or made of something else by now.
// With refresh, Debian is asked for its current Valkey.
func Ensure(ctx context.Context, h home.Home, refresh bool, say func(format string, args ...any)) (Pins, error) {
	recipes, err := recipes(ctx, h, refresh, say)
	if err != nil {
		return nil, err
	}
	old, err := ReadPins(h)
	if err != nil {
		return nil, err
	}
	store := registry.Store{Dir: h.Images()}
	var pins Pins
	for _, r := range recipes {
		if pin, ok := old.current(r, store); ok {
			pins = append(pins, pin)
			continue
		}
		say("image %s", r.refs[0])
		digest, err := store.Add(r.path, r.config, r.refs...)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", r.refs[0], err)
		}
		pins = append(pins, Pin{Refs: r.refs, From: r.from, Source: r.source, Digest: digest})
	}
	return pins, pins.write(h)
}

// current finds the pin of an image that need not be made again.
func (p Pins) current(r recipe, store registry.Store) (Pin, bool) {
	for _, pin := range p {
		if pin.Source != r.source || strings.Join(pin.Refs, " ") != strings.Join(r.refs, " ") {
			continue
		}
		for _, ref := range pin.Refs {
			if store.Digest(ref) != pin.Digest {
				return Pin{}, false
			}
		}
		return pin, true
	}
	return Pin{}, false
}

func recipes(ctx context.Context, h home.Home, refresh bool, say func(string, ...any)) ([]recipe, error) {
	var all []recipe
	for _, program := range []struct{ ref, name, user string }{{Pause, "pause", "65535"}, {CoreDNS, "coredns", ""}} {
		b, err := os.ReadFile(h.Bin(program.name))
		if err != nil {
			return nil, fmt.Errorf("%w: run the lab's build.sh", err)
		}
		sum := sha256.Sum256(b)
		all = append(all, recipe{
			refs: []string{program.ref}, from: "the lab's " + program.name, source: hex.EncodeToString(sum[:]),
			path: h.Bin(program.name), config: v1.Config{User: program.user},
		})
	}
	for _, release := range debian.Releases {
		root, err := debian.Ensure(ctx, h, release, refresh, say)
		if err != nil {
			return nil, err
		}
		const repository = "docker.io/valkey/valkey:"
		all = append(all, recipe{
			refs: []string{repository + root.Version, repository + release.Line},
			from: "Debian " + release.Suite + " valkey " + root.Package, source: root.Digest, path: root.Dir,
			config: v1.Config{
				Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"valkey-server"},
				WorkingDir: "/data", Volumes: map[string]struct{}{"/data": {}},
			},
		})
	}
	return all, nil
}
