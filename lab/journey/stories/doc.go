// Package stories holds the journeys: what users do and what they were
// promised, one function each.
//
// A story promises to pass only if the promise held in front of its eyes. It
// uses nothing but its stage, makes nothing outside its namespace that it does
// not clean up, and never asserts how fast a machine is.
package stories
