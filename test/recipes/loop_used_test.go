//go:build recipes

package recipes

import (
	"strings"
	"testing"
)

func TestLoopVolumesSayWhatTheyUse(t *testing.T) {
	n := newLoop(t)
	n.attacher()
	one, two := claim{uid: number(0x1101), size: 16 * mib}, claim{uid: number(0x1102), size: 16 * mib}
	for _, c := range []claim{one, two} {
		n.releases(c)
		n.want(0, "provision", c)
	}
	n.runs("dd", "if=/dev/zero", "of="+n.disks(two)[0], "bs=1M", "count=5", "oflag=direct")
	n.runs("sync")
	if took := n.takes(two); took == n.takes(one) {
		t.Errorf("the volume with 5 MiB of data takes %s bytes, as the empty one", took)
	}
	n.want(0, "list", claim{}, `,"used":`+n.takes(one)+"}", `,"used":`+n.takes(two)+"}", `{"lines":2}`)
	for _, c := range []claim{one, two} {
		n.want(0, "delete", c)
	}
}

// takes returns what du says that the file of a volume takes.
func (n *node) takes(c claim) string {
	n.t.Helper()
	return strings.Fields(n.runs("du", "--block-size=1", n.base+"/.loop/"+c.pv()+".img"))[0]
}
