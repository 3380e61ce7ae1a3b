package cluster

import (
	"fmt"

	"valkey.io/valkey-operator/internal/state"
)

// pressure is which volumes of a shard are too full, and how that is known.
type pressure struct {
	members []pressedMember
	// emergency says that one of them is about to refuse writes, or does.
	emergency bool
	// worst names one that is worst off, and how says what is the matter with it.
	worst, how string
	// unknown says of which volumes nothing is known, and why; empty when of none.
	unknown string
}

type pressedMember struct {
	state.Member
	use state.Fact[use]
}

// pressureOf judges the volumes of a shard. Those of which nothing trustworthy
// is known neither count as full nor keep the others from growing.
func pressureOf(in Input, settings growthSettings, shard int) pressure {
	var found pressure
	worst := -1
	for _, member := range in.ofShard(shard) {
		seen, symptom := useOf(in, member), outOfSpace(in, member)
		if !symptom && !seen.Known {
			if found.unknown == "" {
				found.unknown = fmt.Sprintf("how full %s is, is not known: %s", volumeName(member), seen.Why)
			}
			continue
		}
		if !symptom && seen.Value.peak < settings.threshold-settings.eased {
			continue
		}
		found.members = append(found.members, pressedMember{member, seen})
		found.emergency = found.emergency || symptom || seen.Value.percent >= settings.emergency
		if rank := rankOf(settings, seen, symptom); rank > worst {
			worst, found.worst, found.how = rank, volumeName(member), complaint(settings, seen, symptom)
		}
	}
	return found
}

// rankOf orders full volumes by what is the matter with them, a server's own
// complaint first. Percentages do not count: volumes of one shard have the same data
// and would take turns in being the fullest, each time with a status to be written.
func rankOf(settings growthSettings, seen state.Fact[use], symptom bool) int {
	switch {
	case symptom:
		return 2
	case seen.Value.percent >= settings.threshold-settings.eased:
		return 1
	default:
		return 0
	}
}

func complaint(settings growthSettings, seen state.Fact[use], symptom bool) string {
	switch {
	case symptom:
		return "has no space left"
	case seen.Value.percent >= settings.threshold-settings.eased:
		return fmt.Sprintf("is %.0f%% full or more", settings.threshold)
	default:
		return fmt.Sprintf("will be %.0f%% full or more while its log is rewritten", settings.threshold)
	}
}

func volumeName(member state.Member) string {
	if member.Claim == nil {
		return "the volume of node " + member.Name
	}
	return "volume " + member.Claim.Name
}

// unsupported says that a shard's volumes are of a class that is known to allow no growth.
func unsupported(in Input, shard int) (string, bool) {
	for _, member := range in.ofShard(shard) {
		if member.Claim == nil {
			continue
		}
		class := in.State.Class(member.Claim.ClassName)
		if class.Known && class.Value.Exists && !class.Value.Expandable {
			return fmt.Sprintf("%s cannot grow: StorageClass %s does not allow it; set its allowVolumeExpansion to true if its driver can", volumeName(member), class.Value.Name), true
		}
	}
	return "", false
}
