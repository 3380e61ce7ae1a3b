// Package arch holds no code: its tests are the rules of how packages may
// depend on each other, and the promises that no single package can keep
// alone. Nothing imports it.
package arch
