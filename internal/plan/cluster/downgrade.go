package cluster

import (
	"fmt"
	"strings"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey"
)

// RuleImageReadsData is the name of a rule that others look up in a plan.
const RuleImageReadsData = "imageReadsData"

// imageReadsData: the server in the image that the spec asks for can read what the
// servers that run write: the files on the volumes, and what replicas are sent. A tag
// says which version it is, or nothing; then a member's agent looks at its files.
func imageReadsData(in Input) plan.Verdict {
	version := tagOf(in.Spec.Image)
	format, known := valkey.DumpFormat(version)
	if !known || !in.holdsData() {
		return settled()
	}
	for _, member := range in.wanted() {
		if member.Record == nil || member.Record.Spec.Template.Image == in.Spec.Image || !member.Server.Known {
			continue
		}
		runs := member.Server.Value.Info.Version
		if written, told := valkey.DumpFormat(runs); told && written > format {
			return plan.Verdict{
				Hold: plan.Blocked, Reason: v1alpha1.ReasonDowngradeRefused, Look: plan.LookWorld,
				Note: fmt.Sprintf("image %s is of version %s, which cannot read the data that node %s of version %s writes; nothing was replaced; set spec.image back to %s, or to a newer one",
					in.Spec.Image, version, member.Name, runs, member.Record.Spec.Template.Image),
			}
		}
	}
	return settled()
}

// tagOf is what an image's tag says, up to where it says more than a version;
// empty when there is none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found {
		return ""
	}
	tag = strings.TrimPrefix(tag, "v")
	if end := strings.IndexFunc(tag, func(c rune) bool { return c != '.' && (c < '0' || c > '9') }); end >= 0 {
		tag = tag[:end]
	}
	return tag
}
