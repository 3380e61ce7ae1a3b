package agent

import (
	"time"

	"valkey.io/valkey-operator/internal/agent/volume"
)

// keepTable keeps a copy of the node table, for the day that the server's own is
// damaged. The server may be about to replace it: one that is not whole is not
// kept, and looked at again.
func (s *sampler) keepTable(now time.Time) {
	if now.Sub(s.keptAt) < calm {
		return
	}
	s.keptAt = now
	if _, err := volume.KeepTable(s.config.Data); err != nil {
		s.board.log.Debug("no copy of the node table could be made", "error", err)
	}
}
