// Package debian makes root file systems of Valkey from Debian's packages, and
// programs in them that run on this machine without a container.
//
// It installs nothing on the machine: apt runs on a state of its own.
package debian

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"valkey.io/valkey-operator/lab/internal/home"
)

//go:embed rootfs.sh
var recipe string

// Release is a line of Valkey and the Debian suite that carries it.
type Release struct {
	Line  string // such as 9.1
	Suite string
}

// Releases are the lines the lab offers.
var Releases = []Release{{"9.1", "forky"}, {"8.1", "trixie"}}

// Rootfs is an unpacked root file system.
type Rootfs struct {
	Release Release
	Version string // Valkey's, such as 9.1.2
	Package string // Debian's version of valkey-server
	Dir     string
	Digest  string // of the recipe and all packages' versions: the content's name
}

// Ensure returns the root file system of a release. The one made before is kept
// while the recipe is the same; with refresh, Debian is asked again. It says so
// when it has to ask: that takes ten seconds.
func Ensure(ctx context.Context, h home.Home, r Release, refresh bool, say func(format string, args ...any)) (Rootfs, error) {
	sum := sha256.Sum256([]byte(recipe))
	dir := h.Cache("valkey-" + r.Line + "-" + hex.EncodeToString(sum[:4]))
	if refresh || !complete(dir) {
		say("unpacking Valkey %s from Debian's %s", r.Line, r.Suite)
		if err := unpack(ctx, h, r, dir); err != nil {
			return Rootfs{}, err
		}
	}
	return describe(r, dir)
}

func complete(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "packages"))
	return err == nil
}

// unpack replaces dir only by a finished whole.
func unpack(ctx context.Context, h home.Home, r Release, dir string) error {
	if err := os.MkdirAll(h.Cache(), 0o755); err != nil {
		return err
	}
	log := h.Cache("valkey-" + r.Line + ".log")
	tmp, err := os.MkdirTemp(h.Cache(), "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, "bash", "-c", recipe, "rootfs.sh", r.Suite, tmp)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("unpacking Valkey %s from Debian's %s: %w: read %s", r.Line, r.Suite, err, log)
	}
	if _, err := describe(r, tmp); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

func describe(r Release, dir string) (Rootfs, error) {
	packages, err := os.ReadFile(filepath.Join(dir, "packages"))
	if err != nil {
		return Rootfs{}, err
	}
	pkg := packageVersion(string(packages), "valkey-server")
	version := upstream(pkg)
	if !strings.HasPrefix(version, r.Line+".") {
		return Rootfs{}, fmt.Errorf("suite %s of Debian carries Valkey %q now, not %s: change the lab's table of releases", r.Suite, version, r.Line)
	}
	sum := sha256.Sum256([]byte(recipe + string(packages)))
	return Rootfs{Release: r, Version: version, Package: pkg, Dir: filepath.Join(dir, "rootfs"), Digest: hex.EncodeToString(sum[:])}, nil
}

func packageVersion(packages, name string) string {
	for line := range strings.Lines(packages) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			return f[1]
		}
	}
	return ""
}

// upstream cuts Debian's epoch and revision off a package's version.
func upstream(version string) string {
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	if i := strings.LastIndexByte(version, '-'); i > 0 {
		version = version[:i]
	}
	version, _, _ = strings.Cut(version, "+")
	return version
}

// programs are those that can be run from Servers.
var programs = []string{"valkey-server", "valkey-cli", "valkey-benchmark", "valkey-check-aof", "valkey-check-rdb"}

// Servers writes programs into the home's servers/LINE that run Valkey from the
// root file system with its own libraries, as any user and without chroot. The
// process keeps its pid. It returns their directory.
func (r Rootfs) Servers(h home.Home) (string, error) {
	loader, err := r.loader()
	if err != nil {
		return "", err
	}
	libs, err := filepath.Glob(filepath.Join(r.Dir, "usr/lib/*-linux-gnu"))
	if err != nil || len(libs) == 0 {
		return "", fmt.Errorf("no libraries in %s", r.Dir)
	}
	dir := h.Servers(r.Release.Line)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, p := range programs {
		script := fmt.Sprintf("#!/bin/sh\nexec %q --argv0 %s --library-path %q %q \"$@\"\n",
			loader, p, strings.Join(libs, ":"), filepath.Join(r.Dir, "usr/bin", p))
		tmp := filepath.Join(dir, p+".tmp")
		if err := os.WriteFile(tmp, []byte(script), 0o755); err != nil {
			return "", err
		}
		if err := os.Rename(tmp, filepath.Join(dir, p)); err != nil {
			return "", err
		}
	}
	out, err := exec.Command(filepath.Join(dir, "valkey-server"), "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v="+r.Version) {
		return "", fmt.Errorf("%s/valkey-server does not run: %w: %s", dir, err, out)
	}
	return dir, nil
}

// loader is the dynamic loader of the root file system's own C library.
func (r Rootfs) loader() (string, error) {
	for _, pattern := range []string{"usr/lib64/ld-linux-*.so.*", "usr/lib/ld-linux-*.so.*"} {
		if found, _ := filepath.Glob(filepath.Join(r.Dir, pattern)); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.New("no dynamic loader in " + r.Dir)
}
