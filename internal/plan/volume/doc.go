// Package volume tells where a volume stands from the evidence on its claim:
// the same function for the node that grows it and for the cluster that looks
// at many. It is pure.
package volume
