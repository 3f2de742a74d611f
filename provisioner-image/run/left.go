package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// mostLeft is how much of the termination message may be about volumes that were left.
const mostLeft = contract.MaxMessage / 2

// report logs the volumes that carry the claim's UID and were left alone, and returns a line about
// each for the termination message.
func (r *Runner) report(ctx context.Context, left []volume.Left) string {
	var lines strings.Builder
	for _, v := range left {
		r.log.WarnContext(ctx, "Kept a volume that carries the claim's UID", "volume", v.ID, "name", v.Name, "created", v.Created, "why", v.Why)
		line := fmt.Sprintf("kept volume %s (%q, created at %s), which carries the claim's UID: %s; if it is not needed: openstack volume delete %s",
			v.ID, v.Name, v.Created.UTC().Format(time.RFC3339), v.Why, v.ID)
		lines.WriteString(oneLine(line, mostLeft-len("\n")) + "\n")
	}
	return oneByOne(lines.String())
}

// oneByOne drops the last lines of what is too long for the termination message.
func oneByOne(lines string) string {
	for len(lines) > mostLeft {
		lines = lines[:strings.LastIndex(lines[:len(lines)-1], "\n")+1]
	}
	return lines
}
