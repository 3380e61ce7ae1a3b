//go:build servers

package valkey_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/valkey"
)

// takenLive are settings that wait for a start although the version would take
// them at any time, since an older one does not.
var takenLive = map[string][]string{"8.1": nil, "9.1": {"io-threads"}}

func TestEachVersionTakesLiveWhatTheTableSays(t *testing.T) {
	t.Parallel()
	for version, program := range serverPrograms(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := &metal{program: program}
			m.add(t, 1)
			conn := m.dial(t, 0)
			defer conn.Close()
			if diff := cmp.Diff(takenLive[version], listedButLive(t, conn)); diff != "" {
				t.Errorf("settings in the table that the server takes at any time (-want +got):\n%s", diff)
			}
		})
	}
}

// listedButLive are settings in the table that the server takes at any time. One
// that it does not take, and that the table lacks, fails the test.
func listedButLive(t *testing.T, conn *valkey.Conn) []string {
	t.Helper()
	var differ []string
	for setting, value := range settingsOf(t, conn) {
		live, listed := takesLive(t, conn, setting, value), valkey.RestartOnly(setting)
		if !live && !listed {
			t.Errorf("%s is for starts alone, and not in the table", setting)
		}
		if live && listed {
			differ = append(differ, setting)
		}
	}
	return differ
}

// takesLive says whether a running server takes the setting at all, be it with
// another value.
func takesLive(t *testing.T, conn *valkey.Conn, setting, value string) bool {
	t.Helper()
	err := conn.ConfigSet(t.Context(), setting, value)
	return err == nil || !strings.Contains(err.Error(), "can't set immutable config")
}

// settingsOf are all settings that a server tells.
func settingsOf(t *testing.T, conn *valkey.Conn) map[string]string {
	t.Helper()
	told, err := conn.ConfigGetAll(t.Context())
	if err != nil || len(told) < 100 {
		t.Fatalf("%d settings, %v", len(told), err)
	}
	return told
}

// TestAFileSaysWhatConfigSetSays shows that a line of a file, and CONFIG SET, take
// the same argument for the same thing, lists of words too.
func TestAFileSaysWhatConfigSetSays(t *testing.T) {
	t.Parallel()
	arguments := map[string]string{
		"client-output-buffer-limit":        valkey.SettingArgument("replica 256mb 64mb 60"),
		"oom-score-adj-values":              valkey.SettingArgument("0 200 800"),
		"latency-tracking-info-percentiles": valkey.SettingArgument("50 99"),
		"notify-keyspace-events":            valkey.SettingArgument(`""`),
		"proc-title-template":               valkey.SettingArgument(`"{title} it's \"x\" {listen-addr}"`),
		"maxmemory":                         valkey.SettingArgument("100mb"),
		"availability-zone":                 "zone # 1",
	}
	for version, program := range serverPrograms(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			file := settingsFile(t, arguments)
			read, told := &metal{program: program, settings: []string{"--include", file}}, &metal{program: program}
			read.add(t, 1)
			told.add(t, 1)
			reader, listener := read.dial(t, 0), told.dial(t, 0)
			defer reader.Close()
			defer listener.Close()
			if err := listener.ConfigSetAll(t.Context(), arguments); err != nil {
				t.Fatal(err)
			}
			fromFile, fromCommand := settingsOf(t, reader), settingsOf(t, listener)
			for setting := range arguments {
				if diff := cmp.Diff(fromFile[setting], fromCommand[setting]); diff != "" {
					t.Errorf("%s (-file +command):\n%s", setting, diff)
				}
			}
		})
	}
}

// settingsFile is a file with a line for each setting.
func settingsFile(t *testing.T, arguments map[string]string) string {
	t.Helper()
	var lines []string
	for setting, argument := range arguments {
		lines = append(lines, valkey.SettingLine(setting, argument))
	}
	file := filepath.Join(t.TempDir(), "settings.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDumpsHaveTheFormatOfTheirVersion(t *testing.T) {
	t.Parallel()
	headers := map[int]string{11: "REDIS0011", 80: "VALKEY080"}
	for version, program := range serverPrograms(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := &metal{program: program}
			m.add(t, 1)
			conn := m.dial(t, 0)
			defer conn.Close()
			if _, err := conn.Raw(t.Context(), "SAVE"); err != nil {
				t.Fatal(err)
			}
			dump, err := os.ReadFile(filepath.Join(m.processes[0].dir, "dump.rdb"))
			format, known := valkey.DumpFormat(version)
			if err != nil || !known || !strings.HasPrefix(string(dump), headers[format]) {
				t.Errorf("a dump of %s begins with %.9q, format %d, %v", version, dump, format, err)
			}
		})
	}
}
