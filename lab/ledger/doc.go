// Package ledger keeps an account of what a Valkey cluster acknowledged, and
// checks it against what the cluster still has.
//
// It promises to count a write as acknowledged only after the server's answer,
// and to say how many acknowledged writes are gone. It is a plain client: it
// knows nothing of Kubernetes or of any operator.
package ledger
