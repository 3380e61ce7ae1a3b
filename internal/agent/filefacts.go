package agent

import (
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// filesOf is what a server says of its files. A dump that failed refuses no
// writes: no member has points in time for its server to save at.
func filesOf(info valkey.Info, held bool) protocol.Files {
	said := info.Persistence
	return protocol.Files{
		Log:             said.AOFEnabled,
		LogBytes:        said.AOFCurrentBytes,
		LogBaseBytes:    said.AOFBaseBytes,
		Writing:         said.AOFRewriteInProgress || said.BGSaveInProgress,
		NextBytes:       nextBytes(info),
		SaveSeconds:     max(said.LastBGSaveSeconds, said.AOFRewriteSeconds, 0),
		WriteFailed:     held || writeFailed(said),
		RewriteFailed:   !said.LastBGSaveOK || said.AOFEnabled && !said.AOFLastRewriteOK,
		MaxMemoryBytes:  info.Memory.Max,
		UsedMemoryBytes: info.Memory.Used,
	}
}

func writeFailed(said valkey.PersistenceInfo) bool { return said.AOFEnabled && !said.AOFLastWriteOK }

// nextBytes is the most that the next rewrite or dump is expected to write: what
// the last one did, or what the data takes in memory, which a file seldom exceeds.
func nextBytes(info valkey.Info) int64 {
	said := info.Persistence
	if said.AOFRewriteInProgress || said.BGSaveInProgress {
		return 0
	}
	return max(said.AOFBaseBytes, info.Memory.Dataset)
}
