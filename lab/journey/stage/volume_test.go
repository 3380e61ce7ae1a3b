package stage

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// inSmallVolume runs a script beside a file system of 16 MiB, which goes with
// the script's mount namespace.
func inSmallVolume(t *testing.T, script string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test mounts a file system in a mount namespace of its own: run it as root")
	}
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "--",
		"sh", "-ec", fmt.Sprintf("mount -t tmpfs -o size=16m none %q\n%s", dir, strings.ReplaceAll(script, "DIR", dir)))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestFillingAVolume(t *testing.T) {
	t.Parallel()
	fill := func(percent int) string { return "(" + fmt.Sprintf(fillScript, "DIR", percent, fillFile) + ")\n" }
	const (
		use   = "df -kP DIR | awk 'END { print $5 }'\n"
		write = "if dd if=/dev/zero of=DIR/data bs=64k count=1 2>/dev/null; then echo written; else echo full; fi\n"
		free  = "rm DIR/" + fillFile + "\n"
	)
	for sentence, c := range map[string]struct{ script, want string }{
		"a part of it":                      {fill(50) + use + write, "50%\nwritten"},
		"to the last block":                 {fill(100) + write, "full"},
		"what came free is taken again":     {write + fill(100) + "rm DIR/data\n" + fill(100) + write, "written\nfull"},
		"a volume fuller than that is left": {fill(75) + fill(50) + use, "75%"},
		"it has room again":                 {fill(100) + free + write, "written"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if got := inSmallVolume(t, c.script); got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
