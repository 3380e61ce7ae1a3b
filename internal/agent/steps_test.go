package agent

import "os"

// EndAt ends the process at a step of a start, where it stands.
func EndAt(named string) {
	step = func(taken string) {
		if taken == named {
			os.Exit(endedAtStep)
		}
	}
}

// The steps of a start that change files.
const (
	StepTableKept     = stepTableKept
	StepTableRestored = stepTableRestored
	StepSetAside      = stepSetAside
)

// endedAtStep is an exit code that nothing else has.
const endedAtStep = 77
