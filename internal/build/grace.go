package build

const (
	// LeastGrace and mostGrace bound the seconds that a pod gets to end.
	LeastGrace = 60
	mostGrace  = 600
	// graceStep is what the seconds are a multiple of, so that they seldom change.
	graceStep = 60
	// leaveSeconds is what a member takes to end beside its save: the agent's 6 s for a
	// hand-over, and the server's own 10 s for the replicas that are behind.
	leaveSeconds = 6 + 10
)

// GraceSeconds is how long the pod of a server gets to end, by how many seconds
// its last save took: the data may have doubled since.
func GraceSeconds(saveSeconds int64) int64 {
	needed := NeededGrace(saveSeconds)
	return min(max((needed+graceStep-1)/graceStep*graceStep, LeastGrace), mostGrace)
}

// NeededGrace is what a stop may take in seconds.
func NeededGrace(saveSeconds int64) int64 { return leaveSeconds + 2*saveSeconds }

// gracePeriod is what the user says, else what the member's saves take.
func gracePeriod(member Member) int64 {
	if asked := member.Spec.Template.TerminationGracePeriodSeconds; asked != nil {
		return *asked
	}
	return max(member.GraceSeconds, LeastGrace)
}
