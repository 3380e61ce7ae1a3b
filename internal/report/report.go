// Package report turns a plan and its outcome into what users see: statuses
// and events. It is pure: it reads, writes and waits for nothing, and takes
// the time from the snapshot.
package report

// Event is something that happened to an object, told once.
type Event struct {
	// Type is Normal or Warning.
	Type    string
	Reason  string
	Message string
}
