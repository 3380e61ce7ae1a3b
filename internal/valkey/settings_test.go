package valkey_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"valkey.io/valkey-operator/internal/valkey"
)

func TestRestartOnly(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]bool{
		"io-threads": true, "databases": true, "unixsocketperm": true, "aclfile": true, "aof_rewrite_cpulist": true,
		"maxmemory": false, "hz": false, "no-such-setting": false, "": false,
	} {
		if got := valkey.RestartOnly(setting); got != want {
			t.Errorf("RestartOnly(%q) = %t", setting, got)
		}
	}
}

func TestSettingArgument(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"allkeys-lru":                    "allkeys-lru",
		"":                               "",
		`""`:                             "",
		`  padded  `:                     "padded",
		"replica 256mb  64mb\t60":        "replica 256mb 64mb 60",
		`"{title} {listen-addr}"`:        "{title} {listen-addr}",
		`'it\'s'`:                        "it's",
		`"a\"b\\c\x41\n"`:                "a\"b\\cA\n",
		`an open "quote`:                 `an open "quote`,
		`"ends"within`:                   `"ends"within`,
		`half"quoted word"`:              "halfquoted word",
		`'single \n stays'`:              `single \n stays`,
		`"replica 1mb 0 0" pubsub 1 1 1`: "replica 1mb 0 0 pubsub 1 1 1",
	} {
		if got := valkey.SettingArgument(value); got != want {
			t.Errorf("SettingArgument(%q) = %q, want %q", value, got, want)
		}
	}
}

func TestAnySettingLineIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		setting := rapid.StringMatching(`[a-z][a-z0-9-]{0,20}`).Draw(t, "setting")
		argument := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune(` "'\#xa0	é`)))).Draw(t, "argument")
		line := valkey.SettingLine(setting, argument)
		if strings.ContainsAny(line, "\r\n") {
			t.Fatalf("%q is no line", line)
		}
		gotSetting, gotArgument, ok := valkey.ParseSettingLine(line)
		if !ok || gotSetting != setting || gotArgument != argument {
			t.Fatalf("%q is read as %q %q %t", line, gotSetting, gotArgument, ok)
		}
		if again := valkey.SettingArgument(argument); strings.TrimSpace(argument) != "" && again == "" && strings.Trim(argument, "\"' \t\v\f\r\n\x00") != "" {
			t.Fatalf("%q lost its value", argument)
		}
	})
}

func TestLinesThatAreNoSettings(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", "# a comment", "#comment here", "alone", "three words here", `open "quote`} {
		if setting, argument, ok := valkey.ParseSettingLine(line); ok {
			t.Errorf("%q is read as %q %q", line, setting, argument)
		}
	}
}

func TestSettingRefusal(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"exit code 1: \n*** FATAL CONFIG FILE ERROR (Version 8.1.1) ***\nReading the configuration file, at line 3\n>>> 'io-threads 500'\nargument must be between 1 and 256 inclusive": "'io-threads 500' argument must be between 1 and 256 inclusive",
		"container server: CrashLoopBackOff: *** FATAL CONFIG FILE ERROR (Version 8.1.1) *** Reading the configuration file, at line 3 >>> 'foo 1' Bad directive":                       "'foo 1' Bad directive",
		"*** FATAL CONFIG FILE ERROR (Version 9.1.2) *** cut":                        "(Version 9.1.2) *** cut",
		"Bad file format reading the append only file: make a backup of it, and run": "",
	} {
		if got, found := valkey.SettingRefusal(words); got != want || found != (want != "") {
			t.Errorf("SettingRefusal(%q) = %q, %t", words, got, found)
		}
	}
}

func TestDumpFormat(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{
		"7.2.4": 11, "8.0": 11, "8.1.1": 11, "8": 11, "9.0.0": 80, "9.1.2": 80, "10.2": 80,
		"6.2": 0, "": 0, "latest": 0, "1.0.4": 0, "v9": 0,
	} {
		if got, known := valkey.DumpFormat(version); got != want || known != (want != 0) {
			t.Errorf("DumpFormat(%q) = %d, %t", version, got, known)
		}
	}
}
