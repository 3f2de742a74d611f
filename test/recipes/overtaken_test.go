//go:build recipes

package recipes

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// overtaken runs a verb that pauses before each of its calls of a program in turn, as if the kubelet had not ended it yet, while another run begins.
// With a lock the other one waits, and the pause ends when it has waited for a second. After each, judge is called.
func (n *node) overtaken(slow, fast string, claims func(i int) (slow, fast claim), judge func(i int, at string, slow, fast ending)) {
	n.t.Helper()
	for i, paused := 1, true; paused; i++ {
		first, second := claims(i)
		_, _ = os.Remove(n.root+"/faults/hit"), os.Remove(n.root+"/faults/continue")
		one := n.start(slow, first.with("FAULT", fmt.Sprintf("%d:pause", i)))
		await(time.Minute, func() bool { _, err := os.Stat(n.root + "/faults/hit"); return err == nil || len(one) > 0 })
		at, err := os.ReadFile(n.root + "/faults/hit")
		paused = err == nil
		other := n.start(fast, second)
		await(time.Second, func() bool { return len(other) > 0 })
		n.must(os.WriteFile(n.root+"/faults/continue", nil, 0o600))
		judge(i, strings.TrimSpace(string(at)), <-one, <-other)
		if !paused && i < 4 {
			n.t.Errorf("%s pauses at only %d places", slow, i-1)
		}
	}
}

// await waits until something is so, or the time is over.
func await(most time.Duration, is func() bool) {
	for end := time.Now().Add(most); !is() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// growing has a volume of 16 MiB overtaken by its own growth, to a larger size than the run before it is for, and fails the test if a volume is smaller
// than the larger size afterwards.
func (n *node) growing(c claim, has func(c claim) bool) {
	n.t.Helper()
	sized := func(mebibytes int) claim {
		c.size = int64(mebibytes) * mib
		return c
	}
	n.want(0, "provision", sized(16))
	n.overtaken("expand", "expand", func(i int) (slow, fast claim) { return sized(16 + 2*i), sized(17 + 2*i) }, func(i int, at string, slow, fast ending) {
		if want := sized(17 + 2*i); slow.code != 0 || fast.code != 0 || !has(want) {
			n.t.Errorf("paused before %q, the expands end with %v and %v, and there is a volume of %d MiB: %t", at, slow, fast, 17+2*i, has(want))
		}
	})
	n.want(0, "delete", c)
}

// A run that the kubelet has not ended yet may be at work while its successor is. A file that is made smaller loses data.
func TestLoopVolumeGrowsByTwoRunsAtOnce(t *testing.T) {
	n := newLoop(t)
	n.attacher()
	c := claim{uid: number(0x7001)}
	n.releases(c)
	n.growing(c, func(c claim) bool { // the disk of a file that is made smaller is so a second later
		info, err := os.Stat(n.base + "/.loop/" + c.pv() + ".img")
		return err == nil && info.Size() == c.size && n.bytesOf(c) == fmt.Sprint(c.size)
	})
	n.hasNoFiles()
}

// What a run has created while a delete was at work is whole, or is not there.
func TestLoopVolumeIsCreatedWhileADeleteIsAtWork(t *testing.T) {
	n := newLoop(t)
	n.runs("sed", "-i", "s/{1..30}/{1..5}/", n.root+"/provision") // seconds for which a delete waits until the disk is detached
	n.attacher()
	c := claim{uid: number(0x7002), size: 16 * mib}
	n.releases(c)
	whole := 0
	n.overtaken("delete", "provision", func(int) (slow, fast claim) { return c, c }, func(_ int, at string, slow, fast ending) {
		left := n.left()
		if strings.Contains(left, c.pv()+".img") {
			whole++
		}
		if n, want := strings.Count(left, c.pv()), 3*strings.Count(left, c.pv()+".img"); n != want || slow.code != 0 && slow.code != 75 || fast.code != 0 && fast.code != 75 {
			t.Errorf("paused before %q, there is %q, after %v and %v", at, left, slow, fast)
		}
		n.want(0, "provision", c)
		n.ownDisk(c)
	})
	if whole == 0 {
		t.Error("no run has created a volume while a delete was at work")
	}
	n.want(0, "delete", c)
	n.hasNoFiles()
}

// A limit that is made smaller is less than what the claim says.
func TestBtrfsVolumeGrowsByTwoRunsAtOnce(t *testing.T) {
	n := newBtrfs(t)
	n.growing(claim{uid: number(1)}, func(c claim) bool { return strings.Contains(fmt.Sprint(n.limits()), fmt.Sprint(c.size)+" 0/") })
	n.isEmpty()
}

func TestNFSVolumeOnBtrfsGrowsByTwoRunsAtOnce(t *testing.T) {
	n := newNFS(t)
	n.growing(exported(1, 0), func(c claim) bool { return strings.Contains(fmt.Sprint(n.allowed()), fmt.Sprint(c.size)) })
	n.exportsNothing()
}
