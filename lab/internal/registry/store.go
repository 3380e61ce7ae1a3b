// Package registry keeps images in an OCI layout and serves them to the lab's
// nodes under every registry's name, so that public image references work
// unchanged and nothing is imported into each node.
//
// It is read-only over the network and never fetches anything from elsewhere:
// an image that was not put in is not there.
package registry

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the OCI annotation that holds an image's full reference.
const refName = "org.opencontainers.image.ref.name"

// Store is an OCI layout's directory.
type Store struct{ Dir string }

// ParseConfig reads KEY=VALUE pairs: entrypoint, cmd and env (repeat for
// lists), user, workdir, volume.
func ParseConfig(pairs []string) (v1.Config, error) {
	var c v1.Config
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return c, fmt.Errorf("%q is not KEY=VALUE", pair)
		}
		switch key {
		case "entrypoint":
			c.Entrypoint = append(c.Entrypoint, value)
		case "cmd":
			c.Cmd = append(c.Cmd, value)
		case "env":
			c.Env = append(c.Env, value)
		case "user":
			c.User = value
		case "workdir":
			c.WorkingDir = value
		case "volume":
			c.Volumes = map[string]struct{}{value: {}}
		default:
			return c, fmt.Errorf("unknown key %q; use entrypoint, cmd, env, user, workdir or volume", key)
		}
	}
	return c, nil
}

// Add makes an image of one layer from a root file system or one static
// binary, and puts it under each reference. A binary is the entrypoint unless
// the config names one. It returns the image's digest, which depends on the
// content alone.
func (s Store) Add(path string, config v1.Config, refs ...string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	dir, member := path, "."
	if !st.IsDir() {
		dir, member = filepath.Split(path)
		if len(config.Entrypoint) == 0 {
			config.Entrypoint = []string{"/" + member}
		}
	}
	config.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, config.Env...)
	tmp, err := os.MkdirTemp("", "lab-layer-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	tar := filepath.Join(tmp, "layer.tar")
	cmd := exec.Command("tar", "--sort=name", "--mtime=@0", "--numeric-owner", "-C", dir, "-cf", tar, member)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar of %s: %w: %s", path, err, out)
	}
	img, err := oneLayer(tar, config)
	if err != nil {
		return "", err
	}
	return s.put(img, refs)
}

func oneLayer(tar string, config v1.Config) (v1.Image, error) {
	layer, err := tarball.LayerFromFile(tar, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(1))
	if err != nil {
		return nil, err
	}
	base := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	cf, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cf = cf.DeepCopy()
	cf.Config, cf.OS, cf.Architecture = config, "linux", runtime.GOARCH
	return mutate.ConfigFile(img, cf)
}

// Load puts the image of an OCI archive (a tar of an OCI layout) under each
// reference. An archive of several images must hold one for this machine's
// architecture; that one is taken.
func (s Store) Load(archive string, refs ...string) (string, error) {
	tmp, err := os.MkdirTemp("", "lab-archive-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if out, err := exec.Command("tar", "-C", tmp, "-xf", archive).CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack %s: %w: %s", archive, err, out)
	}
	index, err := layout.ImageIndexFromPath(tmp)
	if err != nil {
		return "", fmt.Errorf("%s is not an OCI archive: %w", archive, err)
	}
	img, err := forThisMachine(index)
	if err != nil {
		return "", fmt.Errorf("%s: %w", archive, err)
	}
	return s.put(img, refs)
}

// forThisMachine finds an image in an index, at any depth.
func forThisMachine(index v1.ImageIndex) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		switch {
		case d.MediaType.IsIndex():
			child, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			if img, err := forThisMachine(child); err == nil {
				return img, nil
			}
		case d.MediaType.IsImage() && (d.Platform == nil || d.Platform.Architecture == runtime.GOARCH):
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("no image for %s in it", runtime.GOARCH)
}

// put stores an image and forgets blobs that no reference needs any more.
func (s Store) put(img v1.Image, refs []string) (string, error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := s.lock(syscall.LOCK_EX)
	if err != nil {
		return "", err
	}
	defer unlock()
	path, err := s.open()
	if err != nil {
		return "", err
	}
	for _, ref := range refs {
		tag, err := name.NewTag(ref)
		if err != nil {
			return "", err
		}
		annotated := layout.WithAnnotations(map[string]string{refName: tag.Name()})
		if err := path.ReplaceImage(img, match.Name(tag.Name()), annotated); err != nil {
			return "", err
		}
	}
	unused, err := path.GarbageCollect()
	if err != nil {
		return "", err
	}
	for _, hash := range unused {
		if err := path.RemoveBlob(hash); err != nil {
			return "", err
		}
	}
	digest, err := img.Digest()
	return digest.String(), err
}

func (s Store) open() (layout.Path, error) {
	if path, err := layout.FromPath(s.Dir); err == nil {
		return path, nil
	}
	return layout.Write(s.Dir, empty.Index)
}

// lock keeps writers apart from each other and from readers of the index,
// which is not replaced at one stroke.
func (s Store) lock(how int) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// Digest is that of the image under a reference; "" where there is none.
func (s Store) Digest(ref string) string {
	tag, err := name.NewTag(ref)
	if err != nil {
		return ""
	}
	manifests, err := s.manifests()
	if err != nil {
		return ""
	}
	for _, m := range manifests {
		if m.Annotations[refName] == tag.Name() {
			return m.Digest.String()
		}
	}
	return ""
}
