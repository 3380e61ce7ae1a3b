package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/valkey"
)

// Settings are the settings that a spec asks for, each as the one argument that
// servers take for it.
func Settings(spec v1alpha1.ValkeyClusterSpec) map[string]string {
	settings := map[string]string{}
	for setting, value := range spec.Config {
		settings[setting] = valkey.SettingArgument(string(value))
	}
	return settings
}

// userSettings is the line of a file after which the user's settings stand.
const userSettings = "# From spec.config:"

// settingLines are the user's part of a file.
func settingLines(settings map[string]string) []string {
	lines := []string{userSettings}
	for _, setting := range sortedKeys(settings) {
		lines = append(lines, valkey.SettingLine(setting, settings[setting]))
	}
	return lines
}

// SettingsIn are the user's settings in a file that ConfigFile wrote.
func SettingsIn(file string) map[string]string {
	settings := map[string]string{}
	_, text, _ := strings.Cut(file, userSettings+"\n")
	for line := range strings.Lines(text) {
		if setting, argument, ok := valkey.ParseSettingLine(line); ok {
			settings[setting] = argument
		}
	}
	return settings
}

// ConfigRevision names a file by the settings in it that a server takes only at
// its start; the number tells files with the same ones apart. Without any, the
// first is nameless.
func ConfigRevision(settings map[string]string, number int) string {
	var fixed []string
	for _, setting := range sortedKeys(settings) {
		if valkey.RestartOnly(setting) {
			fixed = append(fixed, valkey.SettingLine(setting, settings[setting]))
		}
	}
	if number == 0 && len(fixed) == 0 {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", number, strings.Join(fixed, "\n")))
	return hex.EncodeToString(sum[:])[:revisionLength]
}
