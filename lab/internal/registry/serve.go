package registry

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// manifests reads the layout's index anew: images are added while it serves.
func (s Store) manifests() ([]v1.Descriptor, error) {
	unlock, err := s.lock(syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer unlock()
	b, err := os.ReadFile(filepath.Join(s.Dir, "index.json"))
	if err != nil {
		return nil, err
	}
	var index v1.IndexManifest
	err = json.Unmarshal(b, &index)
	return index.Manifests, err
}

// Handler answers the pulling half of the OCI distribution API. The client
// names the registry it means in the query's ns, as containerd does.
func (s Store) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
		rest, ok := strings.CutPrefix(r.URL.Path, "/v2/")
		if ok && rest == "" {
			return
		}
		if i := strings.LastIndex(rest, "/blobs/"); i > 0 {
			s.blob(w, r, rest[i+len("/blobs/"):], "application/octet-stream")
			return
		}
		if i := strings.LastIndex(rest, "/manifests/"); i > 0 {
			s.manifest(w, r, rest[:i], rest[i+len("/manifests/"):])
			return
		}
		http.NotFound(w, r)
	})
}

func (s Store) blob(w http.ResponseWriter, r *http.Request, digest, media string) {
	hash, err := v1.NewHash(digest) // only hexadecimal digits pass: no path leads out
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Type", media)
	http.ServeFile(w, r, filepath.Join(s.Dir, "blobs", hash.Algorithm, hash.Hex))
}

func (s Store) manifest(w http.ResponseWriter, r *http.Request, repo, ref string) {
	manifests, err := s.manifests()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	host := r.URL.Query().Get("ns")
	if host == "docker.io" {
		host = name.DefaultRegistry
	}
	for _, m := range manifests {
		if m.Digest.String() == ref || m.Annotations[refName] == host+"/"+repo+":"+ref {
			s.blob(w, r, m.Digest.String(), string(m.MediaType))
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"no such image in the lab"}]}`))
}
