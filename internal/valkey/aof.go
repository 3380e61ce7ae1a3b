package valkey

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// AOFKind is the part that a file plays in an append only log.
type AOFKind string

// The kinds of files: the snapshot a log begins with, what was written since,
// and what a finished rewrite has made superfluous.
const (
	AOFBase      AOFKind = "base"
	AOFIncrement AOFKind = "increment"
	AOFHistory   AOFKind = "history"
)

// AOFFile is one file of an append only log. Name has no directory in it.
type AOFFile struct {
	Name string
	Seq  int64
	Kind AOFKind
}

// AOFManifest lists the files of an append only log, in the order in which
// they are to be read.
type AOFManifest struct {
	Files []AOFFile
}

// Base is the file that the log begins with; a log may have none.
func (m AOFManifest) Base() (AOFFile, bool) {
	for _, file := range m.Files {
		if file.Kind == AOFBase {
			return file, true
		}
	}
	return AOFFile{}, false
}

// Increments are the files to be read after the base, in order.
func (m AOFManifest) Increments() []AOFFile {
	var files []AOFFile
	for _, file := range m.Files {
		if file.Kind == AOFIncrement {
			files = append(files, file)
		}
	}
	return files
}

// ParseAOFManifest reads the manifest in a server's appenddirname. Like the
// server it refuses an empty one, a second base and a name with a directory.
func ParseAOFManifest(text string) (AOFManifest, error) {
	var manifest AOFManifest
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		file, err := parseAOFFile(line)
		if _, has := manifest.Base(); err == nil && has && file.Kind == AOFBase {
			err = errors.New("a second base")
		}
		if err != nil {
			return AOFManifest{}, fmt.Errorf("AOF manifest, line %d: %w", number+1, err)
		}
		manifest.Files = append(manifest.Files, file)
	}
	if len(manifest.Files) == 0 {
		return AOFManifest{}, errors.New("AOF manifest: no file in it")
	}
	return manifest, nil
}

// parseAOFFile reads pairs of a word and a value; words it does not know belong
// to newer servers and are passed over.
func parseAOFFile(line string) (AOFFile, error) {
	var file AOFFile
	for line != "" {
		var key, value string
		var err error
		key, line, _ = strings.Cut(line, " ")
		if value, line, err = cutValue(strings.TrimLeft(line, " ")); err != nil {
			return AOFFile{}, err
		}
		if err := file.set(key, value); err != nil {
			return AOFFile{}, err
		}
	}
	if file.Name == "" || file.Seq == 0 || file.Kind == "" {
		return AOFFile{}, errors.New("no name, number or type")
	}
	return file, nil
}

// cutValue takes one value off the line. The server quotes a name with unusual
// characters, with escapes that are also Go's.
func cutValue(line string) (value, rest string, err error) {
	if !strings.HasPrefix(line, `"`) {
		value, rest, _ = strings.Cut(line, " ")
		return value, strings.TrimLeft(rest, " "), nil
	}
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", "", errors.New("a quote without an end")
	}
	value, err = strconv.Unquote(quoted)
	return value, strings.TrimLeft(line[len(quoted):], " "), err
}

func (f *AOFFile) set(key, value string) error {
	switch key {
	case "file":
		if strings.ContainsAny(value, "/\x00") {
			return fmt.Errorf("file name %q with a directory", value)
		}
		f.Name = value
	case "seq":
		seq, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seq <= 0 {
			return fmt.Errorf("sequence number %q", value)
		}
		f.Seq = seq
	case "type":
		kind, known := map[string]AOFKind{"b": AOFBase, "i": AOFIncrement, "h": AOFHistory}[value]
		if !known {
			return fmt.Errorf("file type %q", value)
		}
		f.Kind = kind
	}
	return nil
}
