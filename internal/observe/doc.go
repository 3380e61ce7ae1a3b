// Package observe reads both worlds, Kubernetes and Valkey, once a pass, and
// returns what it saw as one value. What could not be seen is unknown, never
// absent. It decides nothing and never writes.
package observe
