package stage

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Live shows where something stands: on a terminal a block that is rewritten
// in place, in a log one line for each change.
type Live struct {
	out      io.Writer
	terminal bool
	lines    int
	last     string
}

// NewLive writes to out.
func NewLive(out io.Writer) *Live { return &Live{out: out, terminal: isTerminal(out)} }

// isTerminal says whether a cursor can be moved.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("CI") != "" || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Show replaces the block by another on a terminal, and writes the line in a
// log if it has changed.
func (l *Live) Show(block []string, line string) {
	text := ""
	if l.terminal {
		if l.lines > 0 {
			text = fmt.Sprintf("\033[%dA", l.lines) // up to the block's first line
		}
		for _, b := range block {
			text += "\033[2K           " + b + "\n" // over what stood there
		}
		l.lines = len(block)
	} else if line != l.last {
		l.last = line
		text = "           " + line + "\n"
	}
	_, _ = io.WriteString(l.out, text)
}

// Bar is a share of a whole, in twenty steps.
func Bar(share float64) string {
	const width = 20
	full := int(min(max(share, 0), 1) * width)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}
