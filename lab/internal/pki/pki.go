// Package pki makes the lab's certificates and kubeconfigs.
//
// What is there already is kept, so a restarted cluster goes on trusting
// itself; a file is written whole or not at all. The keys are for a lab on one
// machine and are worth nothing outside it.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of a certificate: longer than any lab lives.
const lifetime = 365 * 24 * time.Hour

// Store is a directory of NAME.crt and NAME.key files.
type Store struct{ Dir string }

// Pair is a key with its certificate.
type Pair struct {
	Key  *ecdsa.PrivateKey
	Cert *x509.Certificate
}

// Request says what a certificate is for.
type Request struct {
	Name   string   // of the files
	CN     string   // the user's name, to an API server
	Orgs   []string // the user's groups
	Signer *Pair    // nil: a certificate authority of its own
	Hosts  []string // names and addresses it serves; none: a client's only
}

// Crt is the path of a certificate.
func (s Store) Crt(name string) string { return filepath.Join(s.Dir, name+".crt") }

// Key is the path of a private key.
func (s Store) Key(name string) string { return filepath.Join(s.Dir, name+".key") }

// Ensure returns the pair of that name, making it where it is missing.
func (s Store) Ensure(r Request) (*Pair, error) {
	if pair, err := s.load(r.Name); !errors.Is(err, os.ErrNotExist) {
		return pair, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := r.template()
	if err != nil {
		return nil, err
	}
	by := r.Signer
	if by == nil {
		by = &Pair{key, template}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Cert, &key.PublicKey, by.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", r.Name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	// The key first: load looks for the certificate.
	if err := writePEM(s.Key(r.Name), "EC PRIVATE KEY", keyDER); err != nil {
		return nil, err
	}
	if err := writePEM(s.Crt(r.Name), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return s.load(r.Name)
}

func (r Request) template() (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: r.CN, Organization: r.Orgs},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(r.Hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range r.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	if r.Signer == nil {
		t.IsCA, t.BasicConstraintsValid = true, true
		t.KeyUsage |= x509.KeyUsageCertSign
		t.ExtKeyUsage = nil
	}
	return t, nil
}

func (s Store) load(name string) (*Pair, error) {
	crt, err := readPEM(s.Crt(name))
	if err != nil {
		return nil, err
	}
	keyDER, err := readPEM(s.Key(name))
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Key(name), err)
	}
	cert, err := x509.ParseCertificate(crt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Crt(name), err)
	}
	return &Pair{key, cert}, nil
}

// PublicKey writes NAME.pub, which verifies what NAME.key signs.
func (s Store) PublicKey(name string) (path string, err error) {
	pair, err := s.load(name)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKIXPublicKey(&pair.Key.PublicKey)
	if err != nil {
		return "", err
	}
	path = filepath.Join(s.Dir, name+".pub")
	return path, writePEM(path, "PUBLIC KEY", der)
}

// Kubeconfig is a user's access to a server.
type Kubeconfig struct {
	File   string
	Server string // URL
	CA     string // name of the authority's pair
	User   string // name of the user's pair
}

// Write writes a kubeconfig with all its keys inside.
func (s Store) Write(k Kubeconfig) error {
	b64 := func(path string) (string, error) {
		b, err := os.ReadFile(path)
		return base64.StdEncoding.EncodeToString(b), err
	}
	ca, err1 := b64(s.Crt(k.CA))
	crt, err2 := b64(s.Crt(k.User))
	key, err3 := b64(s.Key(k.User))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	return writeFile(k.File, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- {name: lab, cluster: {server: "%s", certificate-authority-data: %s}}
users:
- {name: %[3]s, user: {client-certificate-data: %[4]s, client-key-data: %[5]s}}
contexts:
- {name: lab, context: {cluster: lab, user: %[3]s}}
current-context: lab
`, k.Server, ca, k.User, crt, key))
}

func writePEM(path, kind string, der []byte) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func writeFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func readPEM(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("%s is not in PEM form", path)
	}
	return block.Bytes, nil
}
