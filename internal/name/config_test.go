package name_test

import (
	"testing"

	"valkey.io/valkey-operator/internal/name"
)

func TestConfigFiles(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"", "0123abcd"} {
		if got, is := name.ConfigRevision(name.ConfigFile(revision)); !is || got != revision {
			t.Errorf("revision %q is in file %s, which is of %q, %t", revision, name.ConfigFile(revision), got, is)
		}
	}
	for _, file := range []string{"members.json", "valkey-.conf", "valkeyx.conf", "valkey.con", ""} {
		if revision, is := name.ConfigRevision(file); is {
			t.Errorf("file %q is of revision %q", file, revision)
		}
	}
}
