//go:build recipes

package recipes

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// newNFS makes the container of a run on an NFS server, whose btrfs is /export there. No client mounts it: the kernel of the
// tests has no NFS.
func newNFS(t *testing.T) *node {
	t.Helper()
	n := newNode(t, "scripts/nfs-provisioner.sh", "mkfs.btrfs", "-q")
	n.caps = ",+dac_override,+fowner,+sys_admin"
	n.runs("mkdir", n.root+"/export")
	n.runs("mount", "--bind", n.base, n.root+"/export")
	t.Cleanup(func() { n.runs("umount", n.root+"/export") })
	return n
}

// exported is a claim of the class nfs-btrfs.
func exported(i int, size int64) claim {
	return claim{uid: number(i), size: size, more: map[string]string{
		"FLEX_QUOTA": "btrfs", "FLEX_NFS_SERVER": "filer", "FLEX_NFS_PATH": "/srv", "FLEX_ACCESS_MODES": "ReadWriteMany",
	}}
}

func (n *node) export(c claim) string { return n.base + "/volumes/" + c.pv() }

// refused fails the test unless the kernel refuses a write beyond so many bytes, and returns how
// many were written.
func (n *node) refused(file string, limit int64) {
	n.t.Helper()
	says, err := n.tries("dd", "if=/dev/zero", "of="+file, "bs=1M", fmt.Sprintf("count=%d", limit/mib+50), "conv=fsync")
	if err == nil || !strings.Contains(says, "Disk quota exceeded") {
		n.t.Errorf("more than %d bytes were written: %v, %s", limit, err, says)
	}
	info, err := os.Stat(file)
	n.must(err)
	if got := info.Size(); got >= limit || got < limit-8*mib {
		n.t.Errorf("%d bytes were written to a volume of %d", got, limit)
	}
}

// allowed returns what the quota group of each subvolume allows.
func (n *node) allowed() map[string]string {
	n.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(n.runs("btrfs", "qgroup", "show", "-r", "--raw", n.base)) {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasPrefix(fields[0], "0/") && fields[0] != "0/5" {
			out[fields[0]] = fields[3]
		}
	}
	return out
}

// exportsNothing fails the test unless nothing is left of any volume.
func (n *node) exportsNothing() {
	n.t.Helper()
	if left := strings.TrimSpace(n.left()); left != "./volumes" {
		n.t.Errorf("left: %s", left)
	}
	for range 120 { // a thread of the kernel removes the group of a subvolume when it has freed the space
		n.runs("btrfs", "filesystem", "sync", n.base)
		if len(n.allowed()) == 0 {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	n.t.Errorf("the groups %v are left", n.allowed())
}

func TestNFSVolumeOnBtrfsHasItsSizeGrowsAndIsDeleted(t *testing.T) {
	n := newNFS(t)
	c, other := exported(1, 64*mib), exported(2, 64*mib)
	n.want(0, "provision", other)
	for range 2 {
		n.want(0, "provision", c)
	}
	for _, pv := range n.api.All("persistentvolumes") {
		if nfs := fmt.Sprint(pv.At("spec", "nfs")); nfs != fmt.Sprintf("map[path:/srv/volumes/%s server:filer]", pv.At("metadata", "name")) {
			t.Errorf("the PV has %s", nfs)
		}
	}
	if !n.hasPV(c) {
		t.Error("there is no PV")
	}
	file := n.export(c) + "/file"
	n.unprivileged("touch", file)
	n.refused(file, 64*mib)
	c.size = 96 * mib
	for range 2 {
		n.want(0, "expand", c)
	}
	n.refused(file, 96*mib)
	c.size = 8 << 30
	n.want(73, "expand", c, "bytes free")
	c.size = 64 * mib
	n.want(0, "expand", c, grownTo(96*mib))
	n.want(0, "provision", c)
	if groups := fmt.Sprint(n.allowed()); !strings.Contains(groups, fmt.Sprint(96*mib)) {
		t.Errorf("an expand must never shrink, and the limits are %s", groups)
	}
	n.refused(n.export(other)+"/file", 64*mib)
	for _, c := range []claim{c, c, other} {
		n.want(0, "delete", c)
	}
	n.exportsNothing()
}

func TestNFSOnBtrfsRefusesWhatItCannotCreate(t *testing.T) {
	n := newNFS(t)
	for i, test := range []struct {
		name, value string
		code        int
		word        string
	}{
		{"FLEX_VOLUME_MODE", "Block", 65, "request volumeMode Filesystem"},
		{"FLEX_SIZE", "8589934592", 73, "less than 8589934592 bytes free"},
		{"FLEX_QUOTA", "zfs", 78, "quota is zfs"},
		{"FLEX_DIRECTORY", "../etc", 78, "must be below the export"},
	} {
		c := exported(20+i, 64*mib)
		c.more[test.name] = test.value
		n.want(test.code, "provision", c, test.word)
		n.want(0, "delete", exported(20+i, 64*mib))
	}
	if pvs := n.api.All("persistentvolumes"); len(pvs) > 0 {
		t.Errorf("there are %v", pvs)
	}
	c := exported(1, 64*mib)
	delete(c.more, "FLEX_QUOTA")
	n.want(0, "provision", c) // a directory
	n.want(64, "expand", c)
	c = exported(1, 96*mib)
	n.want(78, "expand", c, "is not a subvolume") // the limit would be the whole export's
	n.want(0, "delete", c)
	n.exportsNothing()
	n.runs("umount", n.root+"/export")
	n.want(78, "provision", c, "is not on btrfs")
	n.want(75, "delete", c, "is not on btrfs")
	n.runs("mount", "--bind", n.base, n.root+"/export")
}

// A run that is killed at any call of a program leaves no volume without its limit, and a repetition
// completes it; so does a delete, which leaves nothing.
func TestNFSOnBtrfsIsKilledAtEachStep(t *testing.T) {
	n := newNFS(t)
	limited := func(c claim, at string) {
		t.Helper()
		if _, err := os.Stat(n.export(c)); err == nil && !strings.Contains(fmt.Sprint(n.allowed()), fmt.Sprint(c.size)) {
			t.Errorf("killed %s: there is a volume without its limit: %v", at, n.allowed())
		} else if err != nil && n.hasPV(c) {
			t.Errorf("killed %s: there is a PV without its volume", at)
		}
	}
	made := func(i int) claim { return exported(i, int64(16*mib+i*4096)) }
	again := func(c claim, at string) {
		limited(c, at)
		n.want(0, "provision", c)
		limited(c, at)
		n.want(0, "delete", c)
	}
	n.killed("provision", "killed before", made, again)
	n.killed("provision", "failure", made, again)
	n.killed("provision", "killed before", made, func(c claim, at string) {
		limited(c, at)
		n.want(0, "delete", c)
	})
	grown := exported(0xfffe, 16*mib)
	n.want(0, "provision", grown)
	n.killed("expand", "killed before", func(i int) claim { return exported(0xfffe, int64(16*mib+i*4096)) }, func(c claim, at string) {
		n.want(0, "expand", c)
		limited(c, at)
	})
	n.killed("delete", "killed before", func(i int) claim {
		c := made(i)
		n.want(0, "provision", c)
		return c
	}, func(c claim, _ string) { n.want(0, "delete", c) })
	n.want(0, "delete", grown)
	n.exportsNothing()
}

// btrfs counts its own blocks: with a limit below 32 KiB a subvolume cannot even get its mode.
func TestNFSVolumeOnBtrfsThatIsTinyHasRoomForAFile(t *testing.T) {
	n := newNFS(t)
	for i, size := range []int64{1, 4096, 32 << 10, mib - 1} {
		c := exported(1+i, size)
		for range 2 {
			n.want(0, "provision", c)
		}
		n.unprivileged("sh", "-ec", "mkdir $0/dir; echo kept >$0/dir/file; sync", n.export(c))
		if allows := fmt.Sprint(n.allowed()); !strings.Contains(allows, fmt.Sprint(mib)) {
			t.Errorf("a claim of %d bytes: the limits are %s", size, allows)
		}
		c.size++
		n.want(0, "expand", c, grownTo(mib))
		n.want(0, "delete", c)
	}
	n.exportsNothing()
}

// A subvolume that has no block left refuses a new limit that is set by its name.
func TestNFSVolumeOnBtrfsThatIsFullGrows(t *testing.T) {
	n := newNFS(t)
	c := exported(1, mib)
	n.want(0, "provision", c)
	n.fillUp(n.export(c))
	id := strings.TrimSpace(n.runs("btrfs", "inspect-internal", "rootid", n.export(c)))
	n.runs("btrfs", "qgroup", "limit", "16384", "0/"+id, n.base) // as much as one that is empty uses
	if says, err := n.tries("btrfs", "qgroup", "limit", "16384", n.export(c)); err == nil {
		t.Logf("this kernel sets it by name, too, so the test proves less: %s", says)
	}
	c.size = 32 * mib
	n.want(0, "expand", c)
	n.unprivileged("dd", "if=/dev/zero", "of="+n.export(c)+"/more", "bs=1M", "count=16", "conv=fsync")
	n.want(0, "delete", c)
	n.want(75, "expand", c, "claim: the volume does not exist")
	n.exportsNothing()
}

// fillUp fills a directory until it takes neither data nor a file.
func (n *node) fillUp(dir string) {
	n.t.Helper()
	_, _ = n.tries("dd", "if=/dev/zero", "of="+dir+"/data", "bs=4k", "conv=fsync")
	for i := range 10_000 {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o600); err != nil {
			return
		}
	}
	n.t.Error("10000 files were created in a directory that is full")
}

// What an earlier run without quota has made is no volume with a limit.
func TestNFSOnBtrfsTakesNoDirectoryForAVolumeWithALimit(t *testing.T) {
	n := newNFS(t)
	c := exported(1, mib)
	n.must(os.MkdirAll(n.export(c), 0o755))
	n.want(75, "provision", c, "is a directory without a limit")
	if n.hasPV(c) {
		t.Error("there is a PV")
	}
	n.want(0, "delete", c)
	n.exportsNothing()
}
