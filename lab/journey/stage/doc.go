// Package stage is where a journey takes place: a Kubernetes cluster, a
// namespace of the journey's own, and the means of a user (kubectl, manifests,
// a client of Valkey).
//
// It promises that a journey which is left by any way cleans up what it made,
// and that a wait says what it waited for and what was seen last. It must not
// import the operator's code: what it knows is what a user can see.
package stage
