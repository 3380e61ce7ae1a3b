package valkey

import "strings"

// OperatorACL are the rules of the user that the operator and the agent speak
// as, to stand after its name and password in an ACL file. They allow what the
// ports of this package send and what planned saves and hand-overs take, but no
// key, no channel, and no way to give itself more.
//
// CLUSTER is allowed whole, because naming a subcommand that an older version
// lacks keeps that server from starting. The two that throw a node's place in
// the cluster away are taken out again: nothing we do may need them.
func OperatorACL() string {
	return strings.Join([]string{
		"resetkeys", "resetchannels", "-@all",
		"+hello", "+ping", "+info", "+dbsize", "+lastsave",
		"+cluster", "-cluster|reset", "-cluster|flushslots",
		"+config|get", "+config|set",
		"+acl|load",
		"+bgsave", "+bgrewriteaof", "+wait", "+waitaof",
		"+client|pause", "+client|unpause", "+shutdown",
	}, " ")
}

// ReplicationACL are the rules of the user as which replicas follow their primary.
func ReplicationACL() string {
	return "resetkeys resetchannels -@all +ping +psync +replconf"
}
