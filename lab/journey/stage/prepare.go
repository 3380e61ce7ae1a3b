package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Sources are files that the lab makes images of.
type Sources struct {
	// OperatorArchive is an OCI archive, LedgerProgram a static program.
	OperatorArchive string
	LedgerProgram   string
	// OperatorNext is an archive of an operator that renders pods
	// otherwise. It may be missing; only the journey that upgrades needs it.
	OperatorNext string
	// Pins is the lab's record of its own images.
	Pins string
}

// Prepare fills in the images that were not named: on the lab they are made,
// under a reference of their content so that a new build is a new image;
// elsewhere they must be named.
func (w *World) Prepare(ctx context.Context, from Sources) error {
	if w.Lab == "" {
		if w.Images.Operator == "" || w.Images.Ledger == "" {
			return errors.New("this cluster is not the lab: push the images of the operator and of the ledger to a registry that it reaches, and name them with --operator-image and --ledger-image")
		}
		w.Images.ValkeyOld = or(w.Images.ValkeyOld, "valkey/valkey:8.1")
		w.Images.ValkeySame = or(w.Images.ValkeySame, "valkey/valkey:9.1")
		return nil
	}
	if err := w.prepareOperator(ctx, from.OperatorArchive, &w.Images.Operator); err != nil {
		return err
	}
	if _, err := os.Stat(from.OperatorNext); err == nil {
		if err := w.prepareOperator(ctx, from.OperatorNext, &w.Images.OperatorNext); err != nil {
			return err
		}
	}
	if err := w.prepareLedger(ctx, from.LedgerProgram); err != nil {
		return err
	}
	return w.readPins(from.Pins)
}

// prepareOperator loads an archive, unless an image was named.
func (w *World) prepareOperator(ctx context.Context, archive string, image *string) error {
	if *image != "" {
		return nil
	}
	sum, err := contentOf(archive)
	if err != nil {
		return fmt.Errorf("the operator's image: %w (run `make image`)", err)
	}
	*image = "valkey.io/valkey-operator:" + sum
	_, err = w.lab(ctx, "image", "--from-oci", archive, *image)
	return err
}

func (w *World) prepareLedger(ctx context.Context, program string) error {
	if w.Images.Ledger != "" {
		return nil
	}
	sum, err := contentOf(program)
	if err != nil {
		return fmt.Errorf("the ledger's program: %w (build ./cmd/ledger of the lab's module)", err)
	}
	w.Images.Ledger = "valkey.io/ledger:" + sum
	_, err = w.lab(ctx, "image", w.Images.Ledger, program, "user=65532:65532")
	return err
}

// contentOf is the beginning of a file's digest.
func contentOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// readPins finds the newest and the oldest line of Valkey among the lab's images.
func (w *World) readPins(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("which Valkey images the lab has: %w", err)
	}
	var pins []struct {
		Refs []string `json:"refs"`
	}
	if err := json.Unmarshal(text, &pins); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, pin := range pins {
		for _, ref := range pin.Refs {
			w.Images.take(strings.TrimPrefix(ref, "docker.io/"), pin.Refs[0])
		}
	}
	if w.Images.Valkey == "" || w.Images.ValkeyOld == "" {
		return fmt.Errorf("%s names no image of Valkey 9.1 and 8.1", path)
	}
	return nil
}

// take uses the exact version of a line that is tested, unless one was named.
func (i *Images) take(line, exact string) {
	exact = strings.TrimPrefix(exact, "docker.io/")
	switch line {
	case "valkey/valkey:9.1":
		i.Valkey, i.ValkeySame = or(i.Valkey, exact), or(i.ValkeySame, line)
	case "valkey/valkey:8.1":
		i.ValkeyOld = or(i.ValkeyOld, exact)
	}
}
