package cluster

import (
	"flag"
	"os"
	"testing"
)

// fixedSeed makes every run of the property tests draw the same worlds, so that a
// change that fails them is the change's own doing. `make fuzz` draws others.
const fixedSeed = "20261130"

func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); seed != nil && seed.Value.String() == seed.DefValue {
		if err := seed.Value.Set(fixedSeed); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
