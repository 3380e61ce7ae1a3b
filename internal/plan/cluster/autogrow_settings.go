package cluster

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// The defaults of spec.storage.autoExpansion, which also hold where it is
// absent: a full disk is told whatever the mode.
const (
	defaultThreshold = 80
	defaultEmergency = 95
	defaultIncrement = "20%"
	defaultCooldown  = 6 * time.Hour
	// The schema's bounds of both thresholds.
	leastThreshold, mostThreshold = 50, 99
	// easedPercent is how far a volume that was told to be full must fall for that
	// to end.
	easedPercent = 2
)

// growthSettings are spec.storage.autoExpansion with its defaults. A value that
// the schema refuses counts as absent: an older schema may have let it in, and
// nothing grows by a number that means nothing.
type growthSettings struct {
	mode                 v1alpha1.AutoExpansionMode
	maxSize              *resource.Quantity
	threshold, emergency float64 // in percent
	// eased is by how many percent below the threshold a volume still counts as full.
	eased     float64
	increment func(base float64) float64
	cooldown  time.Duration
}

func settingsOf(spec v1alpha1.ValkeyClusterSpec) growthSettings {
	auto := v1alpha1.AutoExpansion{}
	if spec.Storage != nil && spec.Storage.AutoExpansion != nil {
		auto = *spec.Storage.AutoExpansion
	}
	settings := growthSettings{
		mode: auto.Mode, maxSize: auto.MaxSize,
		threshold: percentOr(auto.ThresholdPercent, defaultThreshold),
		emergency: percentOr(auto.EmergencyPercent, defaultEmergency),
		cooldown:  auto.Cooldown.Duration,
	}
	settings.emergency = max(settings.emergency, settings.threshold)
	if settings.cooldown < 0 {
		settings.cooldown = defaultCooldown
	}
	increment, known := incrementOf(auto.Increment)
	if !known {
		increment, _ = incrementOf(defaultIncrement)
	}
	settings.increment = increment
	return settings
}

// ThresholdPercent is the use from which on a volume counts as nearly full.
func ThresholdPercent(spec v1alpha1.ValkeyClusterSpec) float64 { return settingsOf(spec).threshold }

func percentOr(percent int32, otherwise float64) float64 {
	if percent < leastThreshold || percent > mostThreshold {
		return otherwise
	}
	return float64(percent)
}

// incrementOf reads a percentage of the present size, or a size; one that is
// not above zero is none.
func incrementOf(text string) (func(base float64) float64, bool) {
	if digits, is := strings.CutSuffix(text, "%"); is {
		percent, err := strconv.ParseFloat(digits, 64)
		return func(base float64) float64 { return base * percent / 100 }, err == nil && percent > 0
	}
	size, err := resource.ParseQuantity(text)
	if err != nil || size.Sign() <= 0 {
		return nil, false
	}
	return func(float64) float64 { return size.AsApproximateFloat64() }, true
}
