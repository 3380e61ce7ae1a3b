package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// program is a file to make an image of.
func program(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func add(t *testing.T, s Store, content string, refs ...string) string {
	t.Helper()
	digest, err := s.Add(program(t, content), v1.Config{User: "999"}, refs...)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func get(t *testing.T, server *httptest.Server, path string) (int, []byte) {
	t.Helper()
	r, err := http.Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, b
}

func TestHandler(t *testing.T) {
	t.Parallel()
	s := Store{Dir: t.TempDir()}
	digest := add(t, s, "one", "docker.io/me/it:1", "ghcr.example/me/it:2")
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	for sentence, c := range map[string]struct {
		path string
		want int
	}{
		"it says that it is a registry":               {"/v2/", 200},
		"an image is found under its tag":             {"/v2/me/it/manifests/1?ns=docker.io", 200},
		"an image is found under its other registry":  {"/v2/me/it/manifests/2?ns=ghcr.example", 200},
		"an image is found by digest":                 {"/v2/me/it/manifests/" + digest + "?ns=docker.io", 200},
		"a blob is found by digest":                   {"/v2/me/it/blobs/" + digest, 200},
		"another tag is not there":                    {"/v2/me/it/manifests/2?ns=docker.io", 404},
		"another registry's image is not there":       {"/v2/me/it/manifests/1?ns=ghcr.example", 404},
		"a blob's digest leads nowhere else":          {"/v2/me/it/blobs/sha256:..%2f..%2findex.json", 404},
		"an unknown digest is not there":              {"/v2/me/it/blobs/sha256:" + "0000000000000000000000000000000000000000000000000000000000000000", 404},
		"what is no part of the API is not there":     {"/v2/me/it/tags/list", 404},
		"what is outside of the API is not there too": {"/index.json", 404},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if got, body := get(t, server, c.path); got != c.want {
				t.Errorf("GET %s = %d, want %d: %s", c.path, got, c.want, body)
			}
		})
	}
}

func TestAnImageHoldsItsProgramAndConfig(t *testing.T) {
	t.Parallel()
	s := Store{Dir: t.TempDir()}
	add(t, s, "one", "docker.io/me/it:1")
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	_, b := get(t, server, "/v2/me/it/manifests/1?ns=docker.io")
	var manifest v1.Manifest
	if err := json.Unmarshal(b, &manifest); err != nil {
		t.Fatal(err)
	}
	_, b = get(t, server, "/v2/me/it/blobs/"+manifest.Config.Digest.String())
	var config v1.ConfigFile
	if err := json.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/program"}, config.Config.Entrypoint); diff != "" {
		t.Error(diff)
	}
	if config.Config.User != "999" {
		t.Errorf("user is %q", config.Config.User)
	}
}

func TestTheSameContentIsTheSameImage(t *testing.T) {
	t.Parallel()
	one, two := Store{Dir: t.TempDir()}, Store{Dir: t.TempDir()}
	if a, b := add(t, one, "same", "docker.io/me/it:1"), add(t, two, "same", "docker.io/me/it:1"); a != b {
		t.Errorf("digests differ: %s, %s", a, b)
	}
}

func TestAReplacedImageIsForgotten(t *testing.T) {
	t.Parallel()
	s := Store{Dir: t.TempDir()}
	old := add(t, s, "one", "docker.io/me/it:1")
	kept := add(t, s, "kept", "docker.io/me/kept:1")
	fresh := add(t, s, "two", "docker.io/me/it:1")
	if got := s.Digest("docker.io/me/it:1"); got != fresh {
		t.Errorf("the tag leads to %s, want the new %s", got, fresh)
	}
	if got := s.Digest("docker.io/me/kept:1"); got != kept {
		t.Errorf("another image was lost: %q", got)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	if got, _ := get(t, server, "/v2/me/it/blobs/"+old); got != 404 {
		t.Errorf("the old image still takes room: %d", got)
	}
}

func TestImagesAddedAtTheSameTimeAreAllThere(t *testing.T) {
	t.Parallel()
	s := Store{Dir: t.TempDir()}
	var group sync.WaitGroup
	for i := range 8 {
		path := program(t, fmt.Sprint(i))
		group.Go(func() {
			if _, err := s.Add(path, v1.Config{}, fmt.Sprintf("docker.io/me/it:%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for i := range 8 {
		if ref := fmt.Sprintf("docker.io/me/it:%d", i); s.Digest(ref) == "" {
			t.Errorf("%s was lost", ref)
		}
	}
}

func TestLoadTakesAnArchive(t *testing.T) {
	t.Parallel()
	from, to := Store{Dir: t.TempDir()}, Store{Dir: t.TempDir()}
	want := add(t, from, "one", "docker.io/me/it:1")
	archive := filepath.Join(t.TempDir(), "it.tar")
	if out, err := exec.Command("tar", "-C", from.Dir, "-cf", archive, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := to.Load(archive, "ghcr.example/me/it:9")
	if err != nil {
		t.Fatal(err)
	}
	if got != want || to.Digest("ghcr.example/me/it:9") != want {
		t.Errorf("loaded %s, want %s", got, want)
	}
	if _, err := to.Load(program(t, "no tar"), "docker.io/me/x:1"); err == nil {
		t.Error("what is no archive must be refused")
	}
}

func TestParseConfig(t *testing.T) {
	t.Parallel()
	got, err := ParseConfig([]string{"entrypoint=/a", "entrypoint=b=c", "cmd=run", "env=K=V", "user=999", "workdir=/data", "volume=/data"})
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/a", "b=c"}, Cmd: []string{"run"}, Env: []string{"K=V"},
		User: "999", WorkingDir: "/data", Volumes: map[string]struct{}{"/data": {}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"colour=red", "user"} {
		if _, err := ParseConfig([]string{bad}); err == nil {
			t.Errorf("%q must be refused", bad)
		}
	}
}
