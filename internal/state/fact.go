// Package state holds the nouns: what was observed of the two worlds, as
// plain, serialisable values. A snapshot can be printed, compared, stored and
// fed to the planner on another day; it holds no client, no channel and no
// credential. It decides nothing.
package state

// Fact is an observation that may have failed: Known says whether Value was
// seen, and Why tells what stood in the way.
type Fact[T any] struct {
	Value T      `json:"value,omitzero"`
	Known bool   `json:"known"`
	Why   string `json:"why,omitempty"`
}

// Seen is a fact that was observed.
func Seen[T any](value T) Fact[T] { return Fact[T]{Value: value, Known: true} }

// Unknown is a fact that could not be observed, and why.
func Unknown[T any](why string) Fact[T] { return Fact[T]{Why: why} }
