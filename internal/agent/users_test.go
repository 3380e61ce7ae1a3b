package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someUsers = "user _operator on #d1 +@all\nuser default on nopass +@all\nuser shop on #d2 +@raed\nuser mail on #d3 +nosuch\n"

func TestRefusedUsers(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		said string
		want []string
	}{
		"two lines of users": {
			"Aborting Valkey startup because of ACL errors: /run/valkey/users.acl:3: Error in applying operation '+@raed': Unknown command. /run/valkey/users.acl:4: Error in applying operation '+nosuch': Unknown command. WARNING: no change",
			[]string{"shop", "mail"},
		},
		"a line of the operator's own": {"/run/valkey/users.acl:1: Error. /run/valkey/users.acl:3: Error. ", nil},
		"a line that is not there":     {"/run/valkey/users.acl:17: Error. ", nil},
		"no line at all":               {"Can't open the append-only file: Permission denied", nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, refusedUsers(someUsers, test.said)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedUsersStayAsTheyWere(t *testing.T) {
	t.Parallel()
	before := "user _operator on #d0 +@all\nuser shop on #d2 +get\n"
	want := "user _operator on #d1 +@all\nuser default on nopass +@all\nuser shop on #d2 +get\nuser mail reset off\n"
	if diff := cmp.Diff(want, withFormer(someUsers, []string{"shop", "mail"}, before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheAgentsOwnPasswordIsAdmitted(t *testing.T) {
	t.Parallel()
	const digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" // of "secret"
	want := strings.Replace(someUsers, "#d1 +@all", "#d1 +@all #"+digest, 1)
	got := admitting(someUsers, "secret")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := admitting(got, "secret"); again != got {
		t.Errorf("once more it becomes %q", again)
	}
}
