package agent

import (
	"fmt"
	"strings"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/process"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
)

// step is told of each step of a start that changes files, after it was taken:
// tests end the agent there.
var step = func(string) {}

// The steps.
const (
	stepTableKept     = "a copy of the node table was made"
	stepTableRestored = "the node table was restored"
	stepSetAside      = "files were set aside"
)

// corruptTable are the server's words for a node table that it does not take.
const corruptTable = "corrupted cluster config file"

// badData are the server's words for a log or a dump that it cannot load.
var badData = []string{
	"Bad file format reading the append only file",
	"Unexpected end of file reading the append only file",
	"Unrecoverable error reading the append only file",
	"Error reading the RDB base file",
	"Error reading the RDB preamble of the AOF file",
	"the truncated file is not the last file",
	"FATAL AOF MANIFEST FILE ERROR",
	"Fatal error loading the DB",
	"Unrecoverable error, aborting now",
	"Wrong RDB checksum",
	"Wrong signature trying to load DB",
	"Unknown command '",
}

// noteDamage remembers what the server could not load, and says whether that is
// how it ended. It is not started again on the same files.
func (a *agent) noteDamage(exit process.Exit, lines []string) bool {
	if exit.Signal != 0 || exit.Code == 0 {
		return false
	}
	for _, line := range lines {
		if strings.Contains(line, corruptTable) {
			a.damage.Table = fmt.Sprintf("the server does not take the node table: %q", line)
			return true
		}
	}
	for _, line := range lines {
		if isBadData(line) {
			a.damage.Data = fmt.Sprintf("the server cannot load its files: %q", line)
			return true
		}
	}
	return false
}

func isBadData(line string) bool {
	for _, words := range badData {
		if strings.Contains(line, words) {
			return true
		}
	}
	return false
}

// mendTable puts the copy of the node table in the place of a damaged one, or
// remembers why it cannot, and makes a copy of one that is whole.
func (a *agent) mendTable() {
	damage := a.tableDamage()
	if damage == "" {
		if _, err := volume.KeepTable(a.config.Data); err != nil {
			a.log.Warn("no copy of the node table could be made", "error", err)
		}
		step(stepTableKept)
		a.restored = volume.IsRestored(a.config.Data)
		return
	}
	keptAs, err := volume.RestoreTable(a.config.Data)
	step(stepTableRestored)
	if err != nil {
		a.damage.Table = fmt.Sprintf("%s, and %s", damage, err)
		return
	}
	a.restored = true
	a.tell(fmt.Sprintf("%s; it was restored from the agent's copy", damage), keptAs)
}

// tableDamage is what is wrong with the node table, in a clause; empty when it
// is whole, or the volume is a blank one's.
func (a *agent) tableDamage() string {
	_, known, err := volume.Self(a.config.Data)
	switch {
	case err != nil:
		return fmt.Sprintf("the node table %s is damaged (%s)", volume.TableFile, err)
	case !known && !a.isBlank():
		return fmt.Sprintf("the node table %s is gone although there is data", volume.TableFile)
	}
	return ""
}

// isBlank says that no key is in the files.
func (a *agent) isBlank() bool {
	appendOnly, err := a.config.appendOnly()
	return err == nil && volume.Emptiness(a.config.Data, appendOnly) == protocol.Yes
}

// obey carries out the command that ends the hold that the member is in.
func (a *agent) obey() error {
	decision, given := a.board.takeCommand()
	if !given {
		return nil
	}
	a.log.Info("the member may start without its data", "held", decision)
	if decision == protocol.DecisionHeldEmpty {
		a.released = true
		return nil
	}
	return a.setAside(decision == protocol.DecisionTableDamaged)
}

// setAside has the member go on without the files that it cannot use: its data,
// and its place in the cluster as well if that is all or nothing.
func (a *agent) setAside(all bool) error {
	set := volume.SetDataAside
	if all {
		set = volume.SetAllAside
	}
	directory, err := set(a.config.Data)
	if err != nil {
		return err
	}
	step(stepSetAside)
	why := a.damage.Data
	if all {
		why = a.damage.Table
	}
	a.tell(why+"; this member goes on without its files", directory)
	a.damage = guard.Damage{}
	if all {
		a.believeTable()
	}
	return nil
}

// believeTable forgets that the node table is from a copy: there is none any
// more, or who could deny it was asked.
func (a *agent) believeTable() {
	a.restored = false
	if err := volume.ForgetRestored(a.config.Data); err != nil {
		a.log.Warn("the node table is still taken for a copy", "error", err)
	}
}

// tell tells what was done to the member's files, and where they are kept.
func (a *agent) tell(what, keptAs string) {
	if keptAs != "" {
		what += ", kept as " + keptAs
	}
	a.board.setKept(what)
	a.log.Warn("files were mended", "what", what)
}

// tooNew is why the server cannot read the files; empty when it can, as far as
// is known.
func (a *agent) tooNew(appendOnly bool) string {
	format, known := volume.Format(a.config.Data, appendOnly)
	if !known || a.version.reads(format) {
		return ""
	}
	return fmt.Sprintf("the files on the volume have the format %s, which a server of version %d.%d cannot read: set spec.image back to the version that wrote them",
		format, a.version.major, a.version.minor)
}
