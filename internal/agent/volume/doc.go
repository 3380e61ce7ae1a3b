// Package volume knows the files of one member's data volume: the lock that
// keeps a second server away, the marker that says whose data it is, the node
// table, whether any key is in the files, and the ballast that keeps space for
// a server's last words.
//
// It changes nothing that a server wrote, except left-overs of saves that were
// cut short and shard ids by which a server would refuse its own node table, and
// those only for the holder of the lock. It starts no process and speaks to nobody.
package volume

import "path/filepath"

// Names below the data directory. The server's own are pinned by the
// configuration that the agent renders.
const (
	// ownDirectory is the agent's.
	ownDirectory = ".valkey-operator"
	// TableFile is the server's cluster-config-file.
	TableFile = "nodes.conf"
	// DumpFile is the server's dbfilename.
	DumpFile = "dump.rdb"
	// LogDirectory is the server's appenddirname.
	LogDirectory = "appendonlydir"
	// LogFile is the server's appendfilename, with which all names in
	// LogDirectory begin.
	LogFile = "appendonly.aof"
)

func ownFile(data, file string) string { return filepath.Join(data, ownDirectory, file) }
