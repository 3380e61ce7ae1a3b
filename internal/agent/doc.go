// Package agent is the first process of a member's container: it decides
// whether the member's server may start, runs it, and tells the kubelet, the
// other agents and the operator how it fares.
//
// It promises that two servers never share a volume, that a primary which lost
// its data never overwrites its replicas, that a full disk ends no server which
// does not sync each write, that a primary hands its slots over before it stops,
// if anybody can take them, and that a server gets all the time to stop that the
// kubelet grants. It writes only to its own volume and run directory, asks other
// agents for facts, and speaks to its own server alone, but for the failover that
// it asks a replica of its shard for; it knows no Kubernetes.
//
// # Whose setting is whose
//
// The server is started on RUN/valkey.conf. That begins with what only newer
// servers know (cluster-config-save-behavior), and includes the operator's
// valkey.conf, which holds what a whole cluster shares: durability (appendonly,
// appendfsync, save), node timeout, coverage and migration rules, the user's own
// settings. After it come the agent's lines, which win because they come last.
// They are what belongs to one member or is secret:
//
//   - the network: port, bind, protected-mode no (users protect, not addresses),
//     cluster-announce-ip;
//   - the process: daemonize no, supervised no, logfile and pidfile empty;
//   - the files: dir, cluster-enabled, cluster-config-file, dbfilename,
//     appenddirname, appendfilename, because the start guard reads them;
//   - the users: aclfile (a copy in RUN, which the agent keeps up to date),
//     primaryuser, primaryauth;
//   - what the start decision asks for: cluster-replica-no-failover and, of a
//     blank member until it serves, a short cluster-node-timeout.
package agent
