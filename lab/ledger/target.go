package ledger

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// connectWithin is how long a cluster may take to answer for the first time.
const connectWithin = time.Minute

// Target is how to reach a cluster.
type Target struct {
	// Addresses are the first ones to ask, each host:port. The cluster tells the rest.
	Addresses []string
	Username  string
	Password  string
	// TLS turns TLS on; CA is a file with the certificate authority, and
	// Insecure trusts any certificate.
	TLS      bool
	CA       string
	Insecure bool
}

func (t Target) option() (valkey.ClientOption, error) {
	o := valkey.ClientOption{
		InitAddress:  t.Addresses,
		Username:     t.Username,
		Password:     t.Password,
		DisableCache: true,
		// A probe each second notices within seconds that a pod has vanished.
		Dialer:            net.Dialer{Timeout: time.Second, KeepAlive: time.Second},
		ConnWriteTimeout:  2 * time.Second,
		BlockingPoolSize:  64, // one for each writer that waits for replicas
		RingScaleEachConn: 8,
	}
	if !t.TLS {
		return o, nil
	}
	o.TLSConfig = &tls.Config{InsecureSkipVerify: t.Insecure} //nolint:gosec // asked for by flag
	if t.CA == "" {
		return o, nil
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return o, err
	}
	o.TLSConfig.RootCAs = x509.NewCertPool()
	if !o.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
		return o, fmt.Errorf("%s holds no certificate", t.CA)
	}
	return o, nil
}

// Connect waits up to a minute for the cluster to answer. The caller closes the client.
func (t Target) Connect(ctx context.Context) (valkey.Client, error) {
	o, err := t.option()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		client, err := valkey.NewClient(o)
		if err == nil {
			return client, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s did not answer within %s: %w", strings.Join(t.Addresses, ","), connectWithin, err)
		case <-again.C:
		}
	}
}
