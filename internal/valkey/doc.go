// Package valkey is the protocol: slots, node tables, INFO, and the few
// commands an operator sends to one chosen server at a time.
//
// It promises that everything a server says is parsed into plain values by pure
// functions, and that what a server did not say is reported as not known.
//
// It knows no Kubernetes, and only dial.go knows the client library.
package valkey
