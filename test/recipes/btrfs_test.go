//go:build recipes

package recipes

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func newBtrfs(t *testing.T) *node {
	t.Helper()
	n := newNode(t, "scripts/btrfs-provisioner.sh", "mkfs.btrfs", "-q")
	n.caps = ",+dac_override,+fowner,+sys_admin"
	return n
}

// limits returns the quota groups that volumes have, with what each allows.
func (n *node) limits() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(n.runs("btrfs", "qgroup", "show", "-r", "-c", "--raw", n.base)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[0], "64/") {
			out[fields[0]] = fields[3] + " " + fields[4]
		}
	}
	return out
}

func sourceOf(c claim) *contract.Source {
	return &contract.Source{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "b.c", UID: c.uid, PVName: c.pv()}
}

func TestBtrfsVolumeHasItsSizeGrowsAndIsDeleted(t *testing.T) {
	n := newBtrfs(t)
	c := claim{uid: number(1), size: 64 * mib}
	n.want(0, "list", claim{}, `{"lines":0}`)
	for range 2 {
		n.want(0, "provision", c)
	}
	if !n.hasPV(c) {
		t.Error("there is no PV")
	}
	if got := n.fill(n.path(c)+"/file", 100); got >= 64*mib || got < 60*mib {
		t.Errorf("%d bytes were written to a volume of 64 MiB", got)
	}
	c.size = 96 * mib
	for range 2 {
		n.want(0, "expand", c)
	}
	if got := n.fill(n.path(c)+"/file", 200); got >= 96*mib || got < 90*mib {
		t.Errorf("%d bytes were written to a volume that has grown to 96 MiB", got)
	}
	c.size = 8 << 30
	n.want(73, "expand", c, "bytes free")
	c.size = 64 * mib
	n.want(0, "expand", c, grownTo(96*mib)) // an expand never shrinks
	n.want(0, "list", claim{}, fmt.Sprintf(`{"uid":%q,"volume":%q,"size":%d,`, c.uid, c.pv(), 96*mib), `{"lines":1}`)
	n.runs("btrfs", "filesystem", "sync", n.base)
	n.want(0, "list", claim{}, `,"used":`+n.referenced()+"}")
	if limits := fmt.Sprint(n.limits()); !strings.Contains(limits, fmt.Sprint(96*mib)) {
		t.Errorf("the limits are %s", limits)
	}
	for range 2 {
		n.want(0, "delete", c)
	}
	n.isEmpty()
}

// referenced returns what btrfs itself says that the only group of a volume refers to.
func (n *node) referenced() string {
	n.t.Helper()
	for line := range strings.Lines(n.runs("btrfs", "qgroup", "show", "--raw", n.base)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[0], "64/") {
			return fields[1]
		}
	}
	n.t.Error("no volume has a group")
	return ""
}

// isEmpty fails the test unless nothing is left of any volume: the only group is that of the file system's own tree.
func (n *node) isEmpty() {
	n.t.Helper()
	if left, groups := n.left(), n.groups(); strings.TrimSpace(left) != "./.btrfs\n./.btrfs/notes" || fmt.Sprint(groups) != "[0/5]" {
		n.t.Errorf("left: %s, groups %v", left, groups)
	}
}

// groups returns the quota groups that there are.
func (n *node) groups() (out []string) {
	n.t.Helper()
	for line := range strings.Lines(n.runs("btrfs", "qgroup", "show", "--raw", n.base)) {
		if name, _, _ := strings.Cut(line, " "); strings.Contains(name, "/") {
			out = append(out, name)
		}
	}
	return out
}

func TestBtrfsCloneHasTheDataAndALimitOfItsOwn(t *testing.T) {
	n := newBtrfs(t)
	source := claim{uid: number(1), size: 64 * mib}
	n.want(0, "provision", source)
	n.must(os.WriteFile(n.path(source)+"/file", []byte("data"), 0o600))
	n.runs("chown", "1000", n.path(source)) // as a pod may do
	clone := claim{uid: number(2), size: 80 * mib, source: sourceOf(source)}
	for range 2 {
		n.want(0, "provision", clone)
	}
	n.must(os.WriteFile(n.path(source)+"/file", []byte("changed"), 0o600))
	if got, err := os.ReadFile(n.path(clone) + "/file"); string(got) != "data" {
		t.Errorf("the clone has %q, %v", got, err)
	}
	if got := n.fill(n.path(clone)+"/more", 200); got >= 80*mib || got < 70*mib {
		t.Errorf("%d bytes were written to a clone of 80 MiB", got)
	}
	if got := n.fill(n.path(source)+"/more", 200); got >= 64*mib || got < 55*mib {
		t.Errorf("%d bytes were written to its source of 64 MiB", got)
	}
	n.want(0, "delete", source)
	if got, err := os.ReadFile(n.path(clone) + "/file"); string(got) != "data" {
		t.Errorf("without its source the clone has %q, %v", got, err)
	}
	n.want(0, "delete", clone)
	n.isEmpty()
}

func TestBtrfsRefusesWhatItCannotCreate(t *testing.T) {
	n := newBtrfs(t)
	source := claim{uid: number(1), size: 64 * mib}
	other := claim{uid: number(2), size: 64 * mib, more: map[string]string{"FLEX_STORAGE_CLASS": "other"}}
	n.want(0, "provision", source)
	n.want(0, "provision", other)
	for i, test := range []struct {
		claim claim
		code  int
		word  string
	}{
		{claim{size: 64 * mib, more: map[string]string{"FLEX_VOLUME_MODE": "Block"}}, 65, "request volumeMode Filesystem"},
		{claim{size: 64 * mib, more: map[string]string{"FLEX_ACCESS_MODES": "ReadWriteOnce,ReadWriteMany"}}, 65, "request ReadWriteOnce"},
		{claim{size: 64 * mib, source: sourceOf(claim{uid: number(9)})}, 73, "the pod of a clone must select the node of its source"},
		{claim{size: 64 * mib, source: sourceOf(other)}, 65, "clone it with its class"},
		{claim{size: 63 * mib, source: sourceOf(source)}, 65, "request at least 67108864 bytes"},
		{claim{size: 64 * mib, source: &contract.Source{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "b", UID: "c", PVName: "../../etc"}}, 65, "remove it from the claim"},
		{claim{size: 8 << 30}, 73, "less than 8589934592 bytes free"},
	} {
		test.claim.uid = number(20 + i)
		n.want(test.code, "provision", test.claim, "claim: ", test.word)
		n.want(0, "delete", test.claim)
		if n.hasPV(test.claim) {
			t.Errorf("%d: there is a PV", i)
		}
	}
	source.source = sourceOf(other)
	n.want(65, "provision", source, "was created from another source")
	n.want(64, "snapshot", source)
	n.want(0, "list", claim{}, number(1), number(2))
	n.want(0, "delete", source)
	n.want(0, "delete", other)
	n.isEmpty()
	n.runs("umount", n.base)
	n.want(75, "list", claim{}, "does not exist")
	n.want(73, "provision", source, "is not on btrfs")
	n.want(75, "delete", source, "is not on btrfs")
	n.runs("mount", "-t", "tmpfs", "tmpfs", n.base)
}

// unprivileged runs a command as a pod would: as another user, without a capability.
func (n *node) unprivileged(command ...string) {
	n.t.Helper()
	n.runs("setpriv", append([]string{"--reuid=1000", "--regid=1000", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"}, command...)...)
}

// Any user may create subvolumes in a directory that it may write to. They do not escape the limit,
// and do not keep the volume from being deleted.
func TestBtrfsSubvolumesOfAPodAreLimitedAndDeletedWithItsVolume(t *testing.T) {
	n := newBtrfs(t)
	c := claim{uid: number(1), size: 64 * mib}
	n.want(0, "provision", c)
	inner := n.path(c) + "/a/inner"
	n.unprivileged("mkdir", n.path(c)+"/a")
	n.unprivileged("btrfs", "-q", "subvolume", "create", inner)
	n.unprivileged("btrfs", "-q", "subvolume", "create", inner+"/deeper\nID 256 gen 1 top level 5 path other")
	n.unprivileged("btrfs", "-q", "subvolume", "snapshot", "-r", inner, n.path(c)+"/read-only")
	n.unprivileged("btrfs", "property", "set", inner, "ro", "true")
	if got := n.fill(n.path(c)+"/file", 100); got >= 64*mib || got < 55*mib {
		t.Errorf("%d bytes were written to a volume of 64 MiB", got)
	}
	n.must(os.Remove(n.path(c) + "/file"))
	n.unprivileged("btrfs", "-q", "subvolume", "create", n.path(c)+"/free")
	if got := n.fill(n.path(c)+"/free/file", 100); got >= 64*mib || got < 55*mib {
		t.Errorf("%d bytes were written to a subvolume in a volume of 64 MiB", got)
	}
	n.want(0, "delete", c)
	n.isEmpty()
}

// What the page says of chains of clones. A kernel in which this fails needs other words there.
func TestBtrfsChainOfClonesHasMoreThanItsSize(t *testing.T) {
	n := newBtrfs(t)
	c := claim{uid: number(1), size: 64 * mib}
	n.want(0, "provision", c)
	for i := range 3 {
		n.fill(fmt.Sprintf("%s/file%d", n.path(c), i), 50)
		next := claim{uid: number(2 + i), size: c.size, source: sourceOf(c)}
		n.want(0, "provision", next)
		n.want(0, "delete", c)
		c = next
	}
	if used := strings.Fields(n.runs("du", "-sm", n.path(c)))[0]; used != "150" {
		t.Errorf("the last of three clones of 64 MiB has %s MiB", used)
	}
	if groups := n.groups(); len(groups) < 4 {
		t.Errorf("the sources are deleted, and the kernel has only the groups %v: the next line proves nothing", groups)
	}
	for range 2 {
		n.want(0, "delete", c)
	}
	n.isEmpty() // the groups of the sources, too, which had the data until now
}

// btrfs counts its own blocks: with a limit below 128 KiB a subvolume cannot have one file.
func TestBtrfsVolumeThatIsTinyHasRoomForAFile(t *testing.T) {
	n := newBtrfs(t)
	for i, size := range []int64{1, 4096, 32 << 10, mib - 1} {
		c, clone := claim{uid: number(1 + 2*i), size: size}, claim{uid: number(2 + 2*i), size: size}
		clone.source = sourceOf(c)
		for _, c := range []claim{c, clone} {
			n.want(0, "provision", c)
			n.unprivileged("sh", "-ec", "mkdir -p $0/dir; echo kept >$0/dir/file; sync", n.path(c))
		}
		c.size++
		n.want(0, "expand", c, grownTo(mib))
		for _, c := range []claim{clone, c} {
			n.want(0, "delete", c)
		}
		n.want(75, "expand", c, "claim: the volume does not exist")
	}
	n.isEmpty()
}

// The group of a volume, and so its limit, is the top level's.
func TestBtrfsVolumeThatIsFullGrows(t *testing.T) {
	n := newBtrfs(t)
	c := claim{uid: number(1), size: mib}
	n.want(0, "provision", c)
	n.fillUp(n.path(c))
	c.size = 32 * mib
	n.want(0, "expand", c)
	n.unprivileged("dd", "if=/dev/zero", "of="+n.path(c)+"/more", "bs=1M", "count=16", "conv=fsync")
	n.want(0, "delete", c)
	n.isEmpty()
}

func TestBtrfsDeletesNoOtherVolumeThanTheListedOne(t *testing.T) {
	n := newBtrfs(t)
	n.deletesTheListed(claim{uid: number(1), size: 16 * mib})
	n.isEmpty()
}

// A run that is killed at any call of a program leaves no volume without its limit, and a repetition
// completes it; so does a delete, which leaves nothing.
func TestBtrfsIsKilledAtEachStep(t *testing.T) {
	n := newBtrfs(t)
	source := claim{uid: number(0xffff), size: 16 * mib}
	n.want(0, "provision", source)
	limited := func(c claim, at string) {
		t.Helper()
		if _, err := os.Stat(n.path(c)); err == nil && !strings.Contains(fmt.Sprint(n.limits()), fmt.Sprint(c.size)+" 0/") {
			t.Errorf("killed %s: there is a volume without its limit: %v", at, n.limits())
		} else if err != nil && n.hasPV(c) {
			t.Errorf("killed %s: there is a PV without its volume", at)
		}
	}
	cloned := func(i int) claim {
		return claim{uid: number(i), size: int64(16*mib + i*4096), source: sourceOf(source)}
	}
	empty := func(i int) claim { return claim{uid: number(i), size: int64(16*mib + i*4096)} }
	again := func(c claim, at string) {
		limited(c, at)
		n.want(0, "provision", c)
		limited(c, at)
		n.want(0, "delete", c)
	}
	n.killed("provision", "killed before", cloned, again)
	n.killed("provision", "failure", empty, again)
	n.killed("provision", "killed before", empty, func(c claim, at string) {
		limited(c, at)
		n.want(0, "delete", c)
	})
	grown := claim{uid: number(0xfffe), size: 16 * mib}
	n.want(0, "provision", grown)
	n.killed("expand", "killed before", func(i int) claim { return claim{uid: grown.uid, size: int64(16*mib + i*4096)} }, func(c claim, at string) {
		n.want(0, "expand", c)
		limited(c, at)
	})
	n.killed("delete", "killed before", func(i int) claim {
		c := empty(i)
		n.want(0, "provision", c)
		return c
	}, func(c claim, _ string) { n.want(0, "delete", c) })
	n.want(0, "delete", grown)
	n.want(0, "delete", source)
	n.isEmpty()
}
