package v1alpha1_test

import "testing"

// try is one write: a creation, or an update when was is set.
type try struct {
	name   string // of the cluster, if it is not demo
	was    string // the spec before, in YAML
	spec   string
	formed bool // the cluster has served before
}

// rule is what one rule lets pass and what it refuses.
type rule struct {
	kind              string // ValkeyCluster if empty
	accepted, refused []try
}

const (
	small      = `{shards: 3}`
	persistent = `{shards: 3, storage: {enabled: true, size: 1Gi}}`
)

// automatic are clusters with the given settings of autoExpansion.
func automatic(settings ...string) []try {
	var tries []try
	for _, setting := range settings {
		tries = append(tries, try{spec: "{shards: 3, storage: {enabled: true, size: 1Gi, autoExpansion: {" + setting + "}}}"})
	}
	return tries
}

// stays makes the rule of a field of a live cluster that must not change:
// set, unset and changed are refused, repeated is accepted.
func stays(one, other string) rule {
	base, with, changed := small, `{shards: 3, `+one+`}`, `{shards: 3, `+other+`}`
	accepted := []try{{was: with, spec: with, formed: true}, {was: base, spec: base, formed: true}}
	return rule{
		accepted: accepted,
		refused: []try{
			{was: base, spec: with, formed: true},
			{was: with, spec: base, formed: true},
			{was: with, spec: changed, formed: true},
		},
	}
}

// The rules of both kinds, by the message that a user sees.
var rules = map[string]rule{
	"metadata.name must have at most 38 characters, so that the names of pods and volumes made from it stay valid; choose a shorter name": {
		accepted: []try{{name: "a23456789-123456789-123456789-12345678", spec: small}},
		refused:  []try{{name: "a23456789-123456789-123456789-123456789", spec: small}},
	},
	"metadata.name must begin with a lower-case letter and hold only lower-case letters, digits and '-' (no dots), since Services are named after it": {
		accepted: []try{{name: "cache-2", spec: small}, {name: "c", spec: small}},
		refused:  []try{{name: "cache.prod", spec: small}, {name: "2cache", spec: small}},
	},
	"metadata.name must not end in '-nodes': that name belongs to the headless Service of another cluster; choose another name": {
		accepted: []try{{name: "nodes", spec: small}, {name: "my-nodes-1", spec: small}},
		refused:  []try{{name: "my-nodes", spec: small}},
	},
	"spec.shards of a live cluster cannot be changed yet; set it back to its former value": {
		accepted: []try{{was: small, spec: small}},
		refused:  []try{{was: small, spec: `{shards: 4}`}, {was: small, spec: `{shards: 2}`}},
	},
	"spec.replicas of a live cluster cannot be changed yet; set it back to its former value": {
		accepted: []try{{was: small, spec: `{shards: 3, replicas: 0}`}, {was: `{shards: 3, replicas: 0}`, spec: small}},
		refused:  []try{{was: small, spec: `{shards: 3, replicas: 1}`}, {was: `{shards: 3, replicas: 1}`, spec: small}},
	},
	"spec.workloadType of a live cluster cannot be changed yet; set it back to its former value": stays(
		`workloadType: Deployment`, `workloadType: StatefulSet`),
	"spec.storage cannot be removed while storage is enabled: members would lose their volumes; put the block back": {
		accepted: []try{{was: `{shards: 3, storage: {size: 1Gi}}`, spec: small}},
		refused:  []try{{was: persistent, spec: small}},
	},
	"spec.storage.enabled of a live cluster cannot be changed yet; create a new cluster with storage and move the data to it": {
		accepted: []try{
			{was: small, spec: `{shards: 3, storage: {size: 1Gi}}`},
			{was: persistent, spec: persistent},
		},
		refused: []try{
			{was: small, spec: persistent},
			{was: `{shards: 3, storage: {size: 1Gi}}`, spec: persistent},
			{was: persistent, spec: `{shards: 3, storage: {enabled: false, size: 1Gi}}`},
			{was: persistent, spec: `{shards: 3, storage: {size: 1Gi}}`},
		},
	},
	"spec.storage.size is required when spec.storage.enabled is true; set it to the size of each member's volume, for example 10Gi": {
		accepted: []try{{spec: persistent}, {spec: `{shards: 3, storage: {enabled: false}}`}},
		refused:  []try{{spec: `{shards: 3, storage: {enabled: true}}`}, {was: persistent, spec: `{shards: 3, storage: {enabled: true}}`}},
	},
	"spec.storage.size must be a positive size such as 10Gi, 500Mi or 1.5Ti (suffixes Ki, Mi, Gi, Ti, Pi or k, M, G, T, P), or a positive number of bytes": {
		accepted: sizes("1Gi", `"1Gi"`, "1.5Gi", "0.5Ti", "64Mi", "1048576Ki", `"1073741824"`, "1073741824", "10G", "1P", "500k", "0.000001Pi"),
		refused: sizes("10GB", `"10 Gi"`, "-1Gi", "0", `"0"`, `""`, "100m", "100000000Ei", "0Gi", "0.0Ti", "-5", `"1.5"`, `"1e9"`, "Gi",
			"9999999Ti", `"+1Gi"`, "10gi", ".5Gi"),
	},
	"spec.storage.autoExpansion.maxSize is required with mode Auto; set it to the largest size that a volume may grow to by itself": {
		accepted: automatic("", `mode: "Off"`, "mode: Recommend", "mode: Auto, maxSize: 5Gi", "mode: Recommend, maxSize: 5Gi"),
		refused:  automatic("mode: Auto"),
	},
	"spec.storage.autoExpansion.maxSize must be a positive size such as 500Gi (suffixes Ki, Mi, Gi, Ti, Pi or k, M, G, T, P), or a positive number of bytes": {
		accepted: automatic("maxSize: 5Gi", "maxSize: 5368709120", `maxSize: "1.5Ti"`),
		refused:  automatic("maxSize: 0", "maxSize: -5Gi", "maxSize: 5GB", `maxSize: ""`),
	},
	"spec.storage.autoExpansion.emergencyPercent must not be below thresholdPercent; raise it, or lower thresholdPercent": {
		accepted: automatic("thresholdPercent: 90, emergencyPercent: 90", "thresholdPercent: 50", "emergencyPercent: 99"),
		refused:  automatic("thresholdPercent: 96", "thresholdPercent: 90, emergencyPercent: 80"),
	},
	"spec.storage.autoExpansion.increment must be a percentage above 0 such as 20%, or a positive size such as 10Gi": {
		accepted: automatic("increment: 20%", "increment: 150%", "increment: 10Gi", "increment: 512Mi"),
		refused:  automatic("increment: 0%", `increment: "0"`, "increment: -5%", "increment: 0Gi", "increment: 20 %", "increment: ten"),
	},
	"spec.storage.autoExpansion.cooldown must be a duration such as 6h or 30m, and not negative": {
		accepted: automatic("cooldown: 6h", "cooldown: 0s", "cooldown: 1h30m", "cooldown: 1.5h"),
		refused:  automatic("cooldown: -6h", `cooldown: "6"`, "cooldown: 6 hours", `cooldown: ""`),
	},
	"spec.storage.storageClassName cannot be changed while storage is enabled: a volume stays in the class it was made in; set it back to its former value": {
		accepted: []try{
			{was: `{shards: 3, storage: {size: 1Gi}}`, spec: `{shards: 3, storage: {size: 1Gi, storageClassName: fast}}`},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, storageClassName: fast}}`, spec: `{shards: 3, storage: {enabled: true, size: 2Gi, storageClassName: fast}}`},
		},
		refused: []try{
			{was: persistent, spec: `{shards: 3, storage: {enabled: true, size: 1Gi, storageClassName: fast}}`},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, storageClassName: fast}}`, spec: persistent},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, storageClassName: fast}}`, spec: `{shards: 3, storage: {enabled: true, size: 1Gi, storageClassName: slow}}`},
		},
	},
	"spec.storage.accessModes cannot be changed while storage is enabled: a volume keeps the access modes it was made with; set them back to their former value": {
		accepted: []try{
			{was: `{shards: 3, storage: {size: 1Gi}}`, spec: `{shards: 3, storage: {size: 1Gi, accessModes: [ReadWriteOncePod]}}`},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, accessModes: [ReadWriteOncePod]}}`, spec: `{shards: 3, storage: {enabled: true, size: 2Gi, accessModes: [ReadWriteOncePod]}}`},
		},
		refused: []try{
			{was: persistent, spec: `{shards: 3, storage: {enabled: true, size: 1Gi, accessModes: [ReadWriteOncePod]}}`},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, accessModes: [ReadWriteOncePod]}}`, spec: persistent},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, accessModes: [ReadWriteOncePod]}}`, spec: `{shards: 3, storage: {enabled: true, size: 1Gi, accessModes: [ReadWriteOnce]}}`},
		},
	},
	"spec.storage.durability of a live cluster cannot be changed yet; set it back to its former value": {
		accepted: []try{
			{was: persistent, spec: `{shards: 3, storage: {enabled: true, size: 1Gi, durability: {fsync: everysec}}}`},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, durability: {fsync: always}}}`, spec: `{shards: 3, storage: {enabled: true, size: 2Gi, durability: {fsync: always}}}`},
		},
		refused: []try{
			{was: persistent, spec: `{shards: 3, storage: {enabled: true, size: 1Gi, durability: {fsync: always}}}`},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, durability: {fsync: always}}}`, spec: persistent},
			{was: `{shards: 3, storage: {enabled: true, size: 1Gi, durability: {fsync: always}}}`, spec: `{shards: 3, storage: {enabled: true, size: 1Gi, durability: {fsync: "no"}}}`},
		},
	},
	"spec.config: names of settings hold only lower-case letters, digits and '-'": {
		accepted: []try{{spec: `{shards: 3, config: {maxmemory: 100mb, hash-max-listpack-entries: "512"}}`}},
		refused: []try{
			{spec: `{shards: 3, config: {MAXMEMORY: 100mb}}`},
			{spec: `{shards: 3, config: {"maxmemory 1": 100mb}}`},
			{spec: `{shards: 3, config: {"": x}}`},
			{spec: `{shards: 3, config: {"a\nb": x}}`},
		},
	},
	"spec.config: a value must be one line; remove the line break": {
		accepted: []try{{spec: `{shards: 3, config: {client-output-buffer-limit: "pubsub 32mb 8mb 60"}}`}},
		refused: []try{
			{spec: `{shards: 3, config: {timeout: "0\nappendonly no"}}`},
			{spec: `{shards: 3, config: {timeout: "0\rappendonly no"}}`},
		},
	},
	"spec.config: maxclients must be at least 100: the connections between members, those of the operator and of the probes count, and without them nobody could set it back": {
		accepted: []try{{spec: `{shards: 3, config: {maxclients: "100"}}`}, {spec: `{shards: 3, config: {maxclients: "20000"}}`}},
		refused:  []try{{spec: `{shards: 3, config: {maxclients: "99"}}`}, {spec: `{shards: 3, config: {maxclients: "\"5\""}}`}},
	},
	"spec.config: cluster-node-timeout must be at least 1000 (milliseconds): members that are merely slow would be replaced by replicas that lack their last writes": {
		accepted: []try{{spec: `{shards: 3, config: {cluster-node-timeout: "1000"}}`}},
		refused:  []try{{spec: `{shards: 3, config: {cluster-node-timeout: "0"}}`}, {spec: `{shards: 3, config: {cluster-node-timeout: "0999"}}`}, {spec: `{shards: 3, config: {cluster-node-timeout: 2s}}`}},
	},
	"spec.config: this setting belongs to the operator (files, ports, addresses, persistence, users, TLS and cluster identity do); remove it, and use spec.storage and spec.users instead": {
		accepted: []try{{spec: `{shards: 3, config: {cluster-node-timeout: "15000", maxclients: "100"}}`}},
		refused: settings("cluster-enabled", "cluster-config-file", "dir", "port", "appendonly", "appendfsync", "save", "aclfile", "user",
			"requirepass", "include", "loadmodule", "bind", "replicaof", "slaveof", "cluster-announce-ip", "replica-announce-ip",
			"tls-port", "tls-cert-file", "shutdown-on-sigterm", "rename-command", "unixsocket", "unixsocketgroup", "rdma-port", "enable-debug-command"),
	},
	"spec.users: names that begin with '_' belong to the operator; choose another name": {
		accepted: []try{{spec: `{shards: 3, users: [{name: app, nopass: true}]}`}},
		refused:  []try{{spec: `{shards: 3, users: [{name: _operator, nopass: true}]}`}},
	},
	"spec.users: a user has either a passwordSecret or nopass, not both; remove one of them": {
		accepted: []try{{spec: `{shards: 3, users: [{name: app, nopass: false, passwordSecret: {name: s}}]}`}},
		refused:  []try{{spec: `{shards: 3, users: [{name: app, nopass: true, passwordSecret: {name: s}}]}`}},
	},
	"spec.users: an enabled user needs a passwordSecret; or set nopass: true to let anybody in by that name": {
		accepted: []try{{spec: `{shards: 3, users: [{name: default, enabled: false}]}`}},
		refused:  []try{{spec: `{shards: 3, users: [{name: app}]}`}, {spec: `{shards: 3, users: [{name: app, enabled: true}]}`}},
	},
	"spec.users: permissions hold command, key and channel rules only; passwords come from passwordSecret, on and off from enabled": {
		accepted: permissions("~cache:* +@read +@write", "allkeys &news.* +@all -@dangerous", "%R~* (+get ~temp:*)", "+config|get ~*"),
		refused: permissions(">secret +@all", "+@all #5e884898da28047151d0e56f8dc6292773603d0d6aabbd", "<old", "!abc", "on", "off ~*",
			"~* nopass", "~* NoPass", "resetpass", "reset +@all", "+@all ON"),
	},
	"a ValkeyNode stays the member it was made as; the operator writes these fields": {
		kind:     "ValkeyNode",
		accepted: []try{{was: node("a", 0, 1, "r1"), spec: node("a", 0, 1, "r2")}},
		refused: []try{
			{was: node("a", 0, 1, "r1"), spec: node("b", 0, 1, "r1")},
			{was: node("a", 0, 1, "r1"), spec: node("a", 1, 1, "r1")},
			{was: node("a", 0, 1, "r1"), spec: node("a", 0, 0, "r1")},
		},
	},
}

func TestRules(t *testing.T) {
	t.Parallel()
	for message, rule := range rules {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			if len(rule.accepted) == 0 || len(rule.refused) == 0 {
				t.Fatal("the rule needs an accepted and a refused row")
			}
			for _, try := range rule.accepted {
				wantAccepted(t, write(t, rule.kind, try))
			}
			for _, try := range rule.refused {
				t.Logf("%+v", try)
				wantRefusal(t, write(t, rule.kind, try), message)
			}
		})
	}
}
