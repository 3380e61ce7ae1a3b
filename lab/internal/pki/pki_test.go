package pki

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCertificates(t *testing.T) {
	t.Parallel()
	s := Store{Dir: t.TempDir()}
	ca, err := s.Ensure(Request{Name: "ca", CN: "an-authority"})
	if err != nil {
		t.Fatal(err)
	}
	server, err := s.Ensure(Request{Name: "server", CN: "a-server", Orgs: []string{"a-group"}, Signer: ca, Hosts: []string{"127.0.0.1", "here.example"}})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	for _, host := range []string{"127.0.0.1", "here.example"} {
		if _, err := server.Cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("clients that trust the authority must trust the server at %s: %v", host, err)
		}
	}
	if server.Cert.IsCA {
		t.Error("a server's certificate must not sign others")
	}
	if got := server.Cert.Subject.Organization; len(got) != 1 || got[0] != "a-group" {
		t.Errorf("groups are %v", got)
	}
	client, err := s.Ensure(Request{Name: "client", CN: "a-client", Signer: ca})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a client's certificate must not serve")
	}
}

func TestWhatIsThereIsKept(t *testing.T) {
	t.Parallel()
	s := Store{Dir: t.TempDir()}
	one, err := s.Ensure(Request{Name: "ca", CN: "an-authority"})
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Ensure(Request{Name: "ca", CN: "an-authority"})
	if err != nil {
		t.Fatal(err)
	}
	if !one.Cert.Equal(two.Cert) || !one.Key.Equal(two.Key) {
		t.Error("a restarted lab must find its old authority")
	}
	if err := os.WriteFile(s.Crt("ca"), []byte("spoilt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(Request{Name: "ca"}); err == nil || !strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("a spoilt certificate must be named and not replaced: %v", err)
	}
}

func TestKubeconfigHoldsItsKeys(t *testing.T) {
	t.Parallel()
	s := Store{Dir: t.TempDir()}
	ca, err := s.Ensure(Request{Name: "ca", CN: "an-authority"})
	if err != nil {
		t.Fatal(err)
	}
	k := Kubeconfig{File: filepath.Join(t.TempDir(), "kubeconfig"), Server: "https://127.0.0.1:1", CA: "ca", User: "me"}
	if err := s.Write(k); err == nil {
		t.Error("a user without a certificate has no kubeconfig")
	}
	if _, err := s.Ensure(Request{Name: "me", CN: "me", Signer: ca}); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(k); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(k.File)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), s.Dir) || !strings.Contains(string(b), "https://127.0.0.1:1") {
		t.Errorf("a kubeconfig must work anywhere on the machine:\n%s", b)
	}
	if st, err := os.Stat(k.File); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("a kubeconfig is for its owner alone: %v, %v", st.Mode(), err)
	}
}
