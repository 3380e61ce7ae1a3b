package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SetConfig gives a running server settings, each as one argument: all of them,
// or none. Run is the process that was seen: another one is given them as well,
// and again when it is seen.
type SetConfig struct {
	To       Server
	Run      string
	Settings map[string]string
}

func (SetConfig) action() {}

// String names the settings without their values, which a log need not know.
func (a SetConfig) String() string {
	return fmt.Sprintf("give node %s the settings %s", a.To.Node, strings.Join(slices.Sorted(maps.Keys(a.Settings)), ", "))
}
