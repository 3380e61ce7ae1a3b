package cluster

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"valkey.io/valkey-operator/lab/internal/home"
)

func TestNodeNames(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		name string
		want int // 0: refused
	}{
		"the first node":             {"n1", 1},
		"the last node":              {"n50", 50},
		"beyond the last":            {"n51", 0},
		"no number":                  {"n", 0},
		"nought":                     {"n0", 0},
		"a number written otherwise": {"n01", 0},
		"another word":               {"hub", 0},
		"a path":                     {"../n1", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			n, err := nodeNumber(c.name)
			if n != c.want || (err == nil) != (c.want != 0) {
				t.Errorf("nodeNumber(%q) = %d, %v; want %d", c.name, n, err, c.want)
			}
		})
	}
}

func TestNodeConfigIsWellFormed(t *testing.T) {
	t.Parallel()
	h := home.Home{Root: t.TempDir()}
	if err := writeNodeConfig(h, 7); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"kubelet.yaml": "10.90.0.17", "kube-proxy.yaml": "n7"} {
		b, err := os.ReadFile(h.State("n7", file))
		if err != nil {
			t.Fatal(err)
		}
		var config map[string]any
		if err := yaml.UnmarshalStrict(b, &config); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if !strings.Contains(string(b), want) {
			t.Errorf("%s does not say %s:\n%s", file, want, b)
		}
	}
	b, err := os.ReadFile(h.State("n7", "cni", "lab.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) || !strings.Contains(string(b), "10.91.7.0/24") {
		t.Errorf("the network configuration is wrong:\n%s", b)
	}
}
