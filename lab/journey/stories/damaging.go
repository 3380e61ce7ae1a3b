package stories

import (
	"slices"
	"strings"
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// damaging are the stories of files that a crash left damaged.
func damaging() []Journey {
	return []Journey{
		{
			Name:  "damaged-table",
			Story: "The node table of a replica, then of a primary, is cut in half, by a crash: the member returns by itself with no key missing, the damaged file is kept beside, and a warning names pod and file",
			Needs: Lab,
			Tier:  Long,
			Limit: 10 * time.Minute,
			Play:  damagedTable,
		},
		{
			Name:  "damaged-log",
			Story: "The log of a replica is damaged in its middle: the replica is rebuilt from its primary by itself, and its files are set aside",
			Needs: Lab,
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  damagedLog,
		},
	}
}

func damagedTable(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	for _, member := range []string{before.Replica(0), before.Primary(1)} {
		damage(c, member, `truncate -s $(( $(stat -c %s nodes.conf) / 2 )) nodes.conf`)
		s.AwaitWarning(readyLimit, c.Spec.Name+"-"+member, "nodes.conf")
		c.AwaitReady()
		expectKept(c, member, "nodes.conf")
		c.Verify(50_000, nil)
	}
}

func damagedLog(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(50_000, nil)
	before, writer := c.Snapshot(), c.StartWriter()
	replica := before.Replica(0)
	// Longer than a command: wherever it falls, something cannot be read.
	damage(c, replica, `f=$(ls -S appendonlydir/*.incr.aof | head -n 1)
dd if=/dev/zero of="$f" bs=512 seek=$(( $(stat -c %s "$f") / 1024 )) count=2 conv=notrunc status=none`)
	s.AwaitWarning(readyLimit, c.Spec.Name+"-"+replica)
	c.AwaitReady()
	expectKept(c, replica, ".aof")
	writer.NothingNoticed(writer.Stop())
	c.Verify(50_000, nil)
}

// damage runs a script in a member's volume and kills its server at once.
func damage(c *stage.Cluster, member, script string) {
	now := c.Snapshot()[member]
	c.Say("damaging a file of %s, a %s, and killing its server", now.Pod, now.Server.Role)
	c.DamageAndKill(now.Pod, script)
}

// expectKept checks that a file of this kind was set aside and not deleted.
func expectKept(c *stage.Cluster, member, kind string) {
	files := c.Files(c.Snapshot()[member].Pod)
	c.Expect(slices.ContainsFunc(files, func(file string) bool {
		return strings.Contains(file, kind) && (strings.Contains(file, "damaged") || strings.Contains(file, "aside"))
	}), "no %s was kept: %v", kind, files)
	c.Say("the damaged file is kept: %v", files)
}
