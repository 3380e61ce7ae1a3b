package protocol

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// PathStartEmpty takes a StartEmpty by POST. It answers 202 when the member goes
// on without its data, 403 for a signature that is not the operator's, and 409 when
// the member is not in that hold any more.
const PathStartEmpty = "/v1/start-empty"

// Unsupported is what an agent answers, with 404, to a path that it does not know.
const Unsupported = "unsupported"

// headerSignature carries the signature of a command.
const headerSignature = "Valkey-Operator-Signature"

// maxCommand bounds what is read of a command, in bytes.
const maxCommand = 4 << 10

// StartEmpty lets a held member start without its data. What it cannot use is
// set aside on its volume, not deleted. Whether it may serve its slots then is
// decided as at any start.
type StartEmpty struct {
	// Hold is the wait that this ends, as Facts named it, and Decision what the member waits for.
	Hold     string   `json:"hold"`
	Decision Decision `json:"decision"`
}

// Addressee is the member that a command is meant for.
type Addressee struct {
	ClusterID   string
	Shard, Node int
}

var (
	// ErrUnsupported means that the agent does not know the command: it is older than that.
	ErrUnsupported = errors.New("the agent does not know this command")
	// ErrNotHeld means that the member is not in that hold any more.
	ErrNotHeld = errors.New("the member is not held like that any more")
	// ErrSignature means that a command is not the operator's.
	ErrSignature = errors.New("the signature is not the operator's")
)

// sign proves that a command comes from somebody who knows the operator's
// password, and to whom it goes: no other member takes it for its own. The
// password itself is not sent.
func (a Addressee) sign(password, path string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(password))
	_, _ = fmt.Fprintf(mac, "POST %s\n%s/%d/%d\n", path, a.ClusterID, a.Shard, a.Node)
	_, _ = mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// Operator gives commands, signed with its password.
type Operator struct {
	Client   *http.Client
	Password string
}

// Post gives a command to the agent at host (an IP address or a name). It returns
// ErrUnsupported, ErrNotHeld or ErrSignature, possibly wrapped, where the agent says so. The
// context bounds the whole exchange.
func (o Operator) Post(ctx context.Context, host string, to Addressee, command StartEmpty) error {
	url := "http://" + net.JoinHostPort(host, strconv.Itoa(Port)) + PathStartEmpty
	body, err := json.Marshal(command)
	if err != nil {
		return fmt.Errorf("writing a command: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("commanding an agent: %w", err)
	}
	request.Header.Set(headerSignature, to.sign(o.Password, request.URL.Path, body))
	response, err := o.Client.Do(request)
	if err != nil {
		return fmt.Errorf("commanding an agent: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxCommand))
	return refusal(response.StatusCode, strings.TrimSpace(string(said)))
}

func refusal(status int, said string) error {
	switch status {
	case http.StatusAccepted:
		return nil
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return ErrUnsupported
	case http.StatusForbidden:
		return ErrSignature
	case http.StatusConflict:
		return fmt.Errorf("%w: %s", ErrNotHeld, said)
	}
	return fmt.Errorf("commanding an agent: it answered %d: %s", status, said)
}

// ReadStartEmpty reads a command and checks that it comes from somebody who knows
// the password and is meant for the addressee; else it returns ErrSignature.
func ReadStartEmpty(request *http.Request, password string, addressee Addressee) (StartEmpty, error) {
	var command StartEmpty
	body, err := io.ReadAll(io.LimitReader(request.Body, maxCommand))
	if err != nil {
		return command, fmt.Errorf("reading a command: %w", err)
	}
	given, wanted := request.Header.Get(headerSignature), addressee.sign(password, request.URL.Path, body)
	if password == "" || !hmac.Equal([]byte(given), []byte(wanted)) {
		return command, ErrSignature
	}
	if err := json.Unmarshal(body, &command); err != nil {
		return command, fmt.Errorf("reading a command: %w", err)
	}
	return command, nil
}
