package process

import (
	"bytes"
	"io"
	"sync"
)

// maxLine bounds what is kept of one line.
const maxLine = 512

// Tail passes everything on to another writer and keeps the last lines. It is
// safe for use by several goroutines.
type Tail struct {
	through io.Writer
	keep    int

	mu    sync.Mutex
	lines [][]byte
	open  bool // the last line has not ended yet
}

// NewTail keeps the last lines of what passes through to a writer.
func NewTail(through io.Writer, lines int) *Tail {
	return &Tail{through: through, keep: lines}
}

// Write never fails: a server must not stumble over its log.
func (t *Tail) Write(text []byte) (int, error) {
	_, _ = t.through.Write(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	for piece := range bytes.Lines(text) {
		t.add(piece)
	}
	return len(text), nil
}

func (t *Tail) add(piece []byte) {
	if !t.open {
		t.lines = append(t.lines, nil)
		t.lines = t.lines[max(0, len(t.lines)-t.keep):]
	}
	t.open = !bytes.HasSuffix(piece, []byte("\n"))
	last := &t.lines[len(t.lines)-1]
	room := maxLine - len(*last)
	piece = bytes.TrimRight(piece, "\r\n")
	*last = append(*last, piece[:min(room, len(piece))]...)
}

// Lines are the last lines, the oldest first.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := make([]string, 0, len(t.lines))
	for _, line := range t.lines {
		lines = append(lines, string(line))
	}
	return lines
}
