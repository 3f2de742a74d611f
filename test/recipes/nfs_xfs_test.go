//go:build kernels

package recipes

import (
	"os"
	"strings"
	"testing"
)

// newNFSOnXFS makes the container of a run on an NFS server, whose XFS is /export there. That clients
// mount it, TestKernelNFSOnXFS shows.
func newNFSOnXFS(t *testing.T) *node {
	t.Helper()
	n := newXFS(t)
	n.runs("rm", n.root+"/provision")
	n.runs("cp", "../../scripts/nfs-provisioner.sh", n.root+"/provision")
	n.runs("mkdir", n.root+"/export")
	n.runs("mount", "--bind", n.base, n.root+"/export")
	t.Cleanup(func() { n.runs("umount", n.root+"/export") })
	return n
}

// onServersXFS is a claim of a class with quota: xfs.
func onServersXFS(i int, size int64) claim {
	return claim{uid: number(i), size: size, more: map[string]string{
		"FLEX_QUOTA": "xfs", "FLEX_NFS_SERVER": "filer", "FLEX_NFS_PATH": "/srv",
		"FLEX_ACCESS_MODES": "ReadWriteMany",
	}}
}

func (n *node) exportOnXFS(c claim) string { return n.base + "/volumes/" + c.pv() }

// exportsNothingOnXFS fails the test unless nothing is left of any volume.
func (n *node) exportsNothingOnXFS() {
	n.t.Helper()
	left, projects := strings.TrimSpace(n.left()), n.projects()
	if left != "./volumes" || len(projects) > 0 {
		n.t.Errorf("left: %s, projects %v", left, projects)
	}
}

func TestNFSVolumeOnXFSHasItsSizeGrowsAndIsDeleted(t *testing.T) {
	n := newNFSOnXFS(t)
	c, other := onServersXFS(1, 64*mib), onServersXFS(2, 16*mib)
	n.want(0, "provision", other)
	for range 2 {
		n.want(0, "provision", c)
	}
	if !n.hasPV(c) {
		t.Error("there is no PV")
	}
	file := n.exportOnXFS(c) + "/file"
	if got := n.fill(file, 100); got != 64*mib {
		t.Errorf("%d bytes were written to a volume of 64 MiB", got)
	}
	c.size = 96 * mib
	for range 2 {
		n.want(0, "expand", c, grownTo(96*mib))
	}
	if got := n.fill(file, 200); got != 96*mib {
		t.Errorf("%d bytes were written to a volume of 96 MiB", got)
	}
	c.size = 8 << 30
	n.want(73, "expand", c, "bytes free")
	c.size = 64 * mib
	n.want(0, "expand", c, grownTo(96*mib)) // an expand never shrinks
	for _, c := range []claim{c, c, other} {
		n.want(0, "delete", c)
	}
	n.want(75, "expand", c, "claim: the volume does not exist")
	n.exportsNothingOnXFS()
}

func TestNFSOnXFSRefusesWhatItCannotCreate(t *testing.T) {
	n := newNFSOnXFS(t)
	c := onServersXFS(1, 64*mib)
	n.must(os.MkdirAll(n.exportOnXFS(c), 0o755)) // of an earlier run without quota
	n.want(75, "provision", c, "is a directory without a limit")
	n.want(78, "expand", c, "is a directory without a limit")
	n.want(0, "delete", c)
	n.runs("umount", n.root+"/export")
	n.mount("loop") // without prjquota
	n.runs("mount", "--bind", n.base, n.root+"/export")
	n.want(78, "provision", c, "can have a limit of its own")
	n.want(75, "delete", c, "can have a limit of its own")
}

// A run that is killed at any call of a program leaves no volume without its limit, and a repetition
// completes it. So does a delete, which leaves nothing.
func TestNFSOnXFSIsKilledAtEachStep(t *testing.T) {
	n := newNFSOnXFS(t)
	limited := func(c claim, at string) {
		t.Helper()
		_, err := os.Stat(n.exportOnXFS(c))
		if err == nil && len(n.projects()) != 1 {
			t.Errorf("%s: there is a volume, and the limits are %v", at, n.projects())
		}
	}
	n.killed("provision", "killed before", func(i int) claim {
		return onServersXFS(i, 16*mib)
	}, func(c claim, at string) {
		limited(c, at)
		n.want(0, "provision", c)
		limited(c, at)
		n.want(0, "delete", c)
		n.exportsNothingOnXFS()
	})
	n.killed("delete", "killed before", func(i int) claim {
		c := onServersXFS(100+i, 16*mib)
		n.want(0, "provision", c)
		return c
	}, func(c claim, at string) {
		limited(c, at)
		n.want(0, "delete", c)
		if n.exportsNothingOnXFS(); t.Failed() {
			t.Fatal(at)
		}
	})
}
