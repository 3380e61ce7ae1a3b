package name

import "strings"

// Names of the files with settings, in the ConfigMap and below PathConfig.
const (
	configPrefix = "valkey"
	configSuffix = ".conf"
)

// ConfigFile is the file with the settings of a revision.
func ConfigFile(revision string) string {
	if revision != "" {
		revision = "-" + revision
	}
	return configPrefix + revision + configSuffix
}

// ConfigRevision is the revision whose settings are in a file, if it is one of
// those.
func ConfigRevision(file string) (revision string, ok bool) {
	middle, hasPrefix := strings.CutPrefix(file, configPrefix)
	middle, hasSuffix := strings.CutSuffix(middle, configSuffix)
	revision, dashed := strings.CutPrefix(middle, "-")
	return revision, hasPrefix && hasSuffix && (middle == "" || dashed && revision != "")
}
