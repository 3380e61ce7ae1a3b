// Command image packs static programs into a container image, as an OCI
// archive, without Docker. The same programs always give the same bytes: times
// are zero and names are sorted.
//
//	image -o dist/valkey-operator.tar -name valkey.io/valkey-operator:dev bin/manager bin/agent
//
// The first program is the entry point. Every program stands in the root
// directory of the image, which holds nothing else.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonroot is the user that distroless images made customary: it owns no file
// and is no user of the machine.
const nonroot = "65532:65532"

func main() {
	archive := flag.String("o", "", "archive to write")
	name := flag.String("name", "", "reference recorded in the archive, for programs that load it")
	arch := flag.String("arch", runtime.GOARCH, "architecture of the programs")
	flag.Parse()
	if err := run(*archive, *name, *arch, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(archive, name, arch string, programs []string) error {
	if archive == "" || name == "" || len(programs) == 0 {
		return errors.New("usage: image -o ARCHIVE -name REFERENCE PROGRAM [PROGRAM]")
	}
	image, err := build(arch, programs)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	if err := write(image, archive, name); err != nil {
		return err
	}
	fmt.Printf("%s %s\n", archive, digest)
	return nil
}

func build(arch string, programs []string) (v1.Image, error) {
	content, err := layer(programs)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: content}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{Entrypoint: []string{"/" + filepath.Base(programs[0])}, User: nonroot, WorkingDir: "/"}
	return mutate.ConfigFile(image, config)
}

// layer holds the programs, owned by root and executable by all.
func layer(programs []string) (v1.Layer, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, program := range programs {
		if err := add(w, program, filepath.Base(program), 0o755); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

func add(w *tar.Writer, file, name string, mode int64) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}

// write makes an archive of an OCI layout with the image in it.
func write(image v1.Image, archive, name string) error {
	dir, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{
		"org.opencontainers.image.ref.name": name,
		"io.containerd.image.name":          name,
	}
	if err := to.AppendImage(image, layout.WithAnnotations(names)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return err
	}
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	return errorOr(pack(out, dir), out.Close)
}

// pack writes the files of a directory in the order of their names.
func pack(out io.Writer, dir string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return add(w, path, filepath.ToSlash(name), 0o644)
	})
	return errorOr(err, w.Close)
}

// errorOr closes in any case and keeps the first error.
func errorOr(err error, closing func() error) error {
	if closed := closing(); err == nil {
		return closed
	}
	return err
}
