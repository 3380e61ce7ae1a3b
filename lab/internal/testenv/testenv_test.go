package testenv

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"valkey.io/valkey-operator/lab/internal/home"
)

func TestServerAnswersAndLeavesNothing(t *testing.T) {
	t.Parallel()
	h, err := home.Default()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.Bin("kube-apiserver")); err != nil {
		t.Fatalf("this test runs a real API server: run the lab's build.sh first (%v)", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := Start(ctx, h)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(h.Bin("kubectl"), "--kubeconfig", s.Kubeconfig, "create", "namespace", "x", "-o", "name").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "namespace/x") {
		t.Errorf("the kubeconfig's user may do everything: %v: %s", err, out)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", s.dir, err)
	}
	for _, p := range s.programs {
		if p.ProcessState == nil {
			t.Errorf("%s still runs", p.Path)
		}
	}
}
