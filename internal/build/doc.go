// Package build turns specs into the objects that they ask for, as apply
// configurations: the same spec gives the same object, byte for byte. It
// decides nothing about when they are written, reads nothing, and knows no
// time.
package build
