package agent

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// cutWords are the server's for a log whose last command it leaves out, because
// it was not written completely: "!!! Truncating the AOF <file> at offset <bytes> !!!".
const cutWords = "!!! Truncating the AOF "

// cutWatch passes the server's output on, and tells how much of its log it leaves out.
type cutWatch struct {
	next io.Writer
	size int64 // of the file that the log ends with, before the start
	tell func(bytes int64)
	line []byte
}

// mostLine bounds what is kept of a line, in bytes.
const mostLine = 4 << 10

func (w *cutWatch) Write(text []byte) (int, error) {
	rest := text
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			w.line = append(w.line, rest[:min(len(rest), mostLine)]...)
			w.line = w.line[:min(len(w.line), mostLine)]
			break
		}
		if offset, cut := cutOffset(string(append(w.line, rest[:end]...))); cut && w.size > offset {
			w.tell(w.size - offset)
		}
		w.line, rest = w.line[:0], rest[end+1:]
	}
	return w.next.Write(text)
}

// cutOffset is where the server cuts its log, by a line of its output.
func cutOffset(line string) (offset int64, cut bool) {
	_, rest, found := strings.Cut(line, cutWords)
	if !found {
		return 0, false
	}
	var file string
	_, err := fmt.Sscanf(rest, "%s at offset %d", &file, &offset)
	return offset, err == nil
}
