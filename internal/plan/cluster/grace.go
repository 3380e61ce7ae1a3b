package cluster

import (
	"fmt"

	"valkey.io/valkey-operator/internal/build"
)

// GraceAdvice says that the time which the user gives servers to stop is shorter
// than what the stop of one may take.
func GraceAdvice(in Input) (string, bool) {
	asked := in.Spec.TerminationGracePeriodSeconds
	if asked == nil {
		return "", false
	}
	for _, member := range in.recorded() {
		files := member.Agent.Value.Files
		if !member.Agent.Known || files == nil {
			continue
		}
		if needed := build.NeededGrace(files.SaveSeconds); needed > *asked {
			return fmt.Sprintf("the server of %s may need %d s to stop, and is killed after %d s; raise spec.terminationGracePeriodSeconds, or remove it",
				member.Name, needed, *asked), true
		}
	}
	return "", false
}
