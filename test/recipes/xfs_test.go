//go:build kernels

package recipes

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// newXFS makes a node with an XFS that has project quotas.
func newXFS(t *testing.T) *node {
	t.Helper()
	n := newNode(t, "scripts/xfs-provisioner.sh", "mkfs.xfs", "-q")
	n.caps = ",+dac_override,+fowner,+sys_admin"
	n.mount("loop,prjquota")
	return n
}

// mount mounts the node's disk again, with other options.
func (n *node) mount(options string) {
	n.t.Helper()
	n.runs("umount", n.base)
	n.runs("mount", "-o", options, n.root+".disk", n.base)
}

// projects returns the limit of each project that has one, in KiB, by its number.
func (n *node) projects() map[string]string {
	n.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(n.runs("xfs_quota", "-x", "-c", "report -p -n -N", n.base)) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[3] != "0" {
			out[strings.TrimPrefix(fields[0], "#")] = fields[3]
		}
	}
	return out
}

// mustBeEmpty fails the test unless nothing is left of any volume.
func (n *node) mustBeEmpty() {
	n.t.Helper()
	left, projects := strings.TrimSpace(n.left()), n.projects()
	if left != "./.xfs\n./.xfs/notes\n./.xfs/projects" || len(projects) > 0 {
		n.t.Errorf("left: %s, projects %v", left, projects)
	}
}

// room returns how many bytes a file system says that it has at a path, in all.
func (n *node) room(path string) string {
	n.t.Helper()
	fields := strings.Fields(n.runs("df", "--output=size", "-B1", path))
	return fields[len(fields)-1]
}

func TestXFSVolumeHasItsSizeGrowsAndIsDeleted(t *testing.T) {
	n := newXFS(t)
	c := claim{uid: number(1), size: 64 * mib}
	n.want(0, "list", claim{}, `{"lines":0}`)
	for range 2 {
		n.want(0, "provision", c)
	}
	if !n.hasPV(c) {
		t.Error("there is no PV")
	}
	if got := n.fill(n.path(c)+"/file", 100); got != 64*mib {
		t.Errorf("%d bytes were written to a volume of 64 MiB", got)
	}
	if size := n.room(n.path(c)); size != fmt.Sprint(64*mib) {
		t.Errorf("df shows %s bytes", size)
	}
	c.size = 96 * mib
	for range 2 {
		n.want(0, "expand", c, grownTo(96*mib))
	}
	if got := n.fill(n.path(c)+"/file", 200); got != 96*mib {
		t.Errorf("%d bytes were written to a volume that has grown to 96 MiB", got)
	}
	c.size = 8 << 30
	n.want(73, "expand", c, "bytes free")
	c.size = 64 * mib
	n.want(0, "expand", c, grownTo(96*mib)) // an expand never shrinks
	n.want(0, "list", claim{}, c.pv(), fmt.Sprintf(`"used":%d}`, 96*mib), `{"lines":1}`)
	for range 2 {
		n.want(0, "delete", c)
	}
	n.mustBeEmpty()
}

// The first eight digits of two UIDs may be the same, and an administrator may have made a
// project.
func TestXFSVolumesShareNoProject(t *testing.T) {
	n := newXFS(t)
	one, other := claim{uid: number(1), size: 16 * mib}, claim{uid: number(1), size: 32 * mib}
	other.uid = strings.TrimSuffix(other.uid, "1") + "2"
	n.runs("mkdir", n.base+"/by-hand")
	n.runs("xfs_quota", "-x", "-c", "project -s -p "+n.base+"/by-hand 2147483649", n.base)
	n.runs("xfs_quota", "-x", "-c", "limit -p bhard=8m 2147483649", n.base)
	n.want(0, "provision", one)
	n.want(0, "provision", other)
	if got, want := n.projects(), map[string]string{"2147483649": "8192", "2147483650": "16384", "2147483651": "32768"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the limits are %v, want %v", got, want)
	}
	n.want(0, "delete", one)
	n.want(0, "delete", other)
	if got := n.projects(); fmt.Sprint(got) != "map[2147483649:8192]" {
		t.Errorf("the limits are %v", got)
	}
}

// A pod that runs as root can give its volume the project of another one. That changes what counts
// for which limit, but no limit.
func TestXFSChangesNoLimitOfAnotherVolume(t *testing.T) {
	n := newXFS(t)
	one, other := claim{uid: number(1), size: 16 * mib}, claim{uid: number(2), size: 32 * mib}
	n.want(0, "provision", one)
	n.want(0, "provision", other)
	n.runs("xfs_quota", "-x", "-c", "project -s -p "+n.path(one)+" 2147483650", n.base)
	one.size = 64 * mib
	n.want(0, "expand", one, grownTo(64*mib))
	if got, want := n.projects(), "map[2147483649:65536 2147483650:32768]"; fmt.Sprint(got) != want {
		t.Errorf("the limits are %v, want %v", got, want)
	}
	n.want(0, "delete", one)
	if got, want := n.projects(), "map[2147483650:32768]"; fmt.Sprint(got) != want {
		t.Errorf("the limits are %v, want %v", got, want)
	}
	n.want(0, "delete", other)
	n.mustBeEmpty()
}

func TestXFSRefusesWhatItCannotCreate(t *testing.T) {
	n := newXFS(t)
	c := claim{uid: number(1), size: 64 * mib}
	n.want(65, "provision", c.with("FLEX_VOLUME_MODE", "Block"), "request volumeMode Filesystem")
	n.want(65, "provision", c.with("FLEX_ACCESS_MODES", "ReadWriteOnce,ReadWriteMany"), "request ReadWriteOnce")
	n.want(73, "provision", claim{uid: number(2), size: 8 << 30}, "less than 8589934592 bytes free")
	n.want(75, "expand", c, "claim: the volume does not exist")
	n.want(64, "snapshot", c)
	n.want(0, "provision", c)
	n.mount("loop") // without prjquota
	n.want(73, "provision", claim{uid: number(3), size: mib}, "can have a limit of its own")
	n.want(75, "expand", c, "can have a limit of its own")
	n.want(75, "delete", c, "can have a limit of its own")
	n.mount("loop,prjquota")
	n.runs("xfs_quota", "-x", "-c", "project -d 0 -s -p "+n.base+" 77", n.base) // of an administrator, for all volumes
	n.want(73, "provision", claim{uid: number(4), size: mib}, "can have a limit of its own")
	n.runs("xfs_quota", "-x", "-c", "project -d 0 -C -p "+n.base+" 77", n.base)
	n.want(0, "delete", c)
	n.want(0, "delete", claim{uid: number(3)}) // of what the refused run has left
	n.mustBeEmpty()
	n.runs("umount", n.base)
	n.want(75, "list", claim{}, "does not exist")
	n.runs("mount", "-o", "loop,prjquota", n.root+".disk", n.base)
}

func TestXFSDeletesNoOtherVolumeThanTheListedOne(t *testing.T) {
	n := newXFS(t)
	n.deletesTheListed(claim{uid: number(1), size: 16 * mib})
	n.mustBeEmpty()
}

// A run that is killed at any call of a program leaves no volume without its limit, and a repetition
// completes it. So does a delete, which leaves nothing.
func TestXFSRunsCanBeKilledAtAnyCall(t *testing.T) {
	n := newXFS(t)
	next := func(i int) claim { return claim{uid: number(i), size: 16 * mib} }
	n.killed("provision", "killed before", next, func(c claim, at string) {
		_, err := os.Stat(n.path(c))
		if limits := n.projects(); err == nil && len(limits) != 1 {
			t.Errorf("%s: the limits are %v", at, limits)
		}
		n.want(0, "provision", c)
		n.want(0, "delete", c)
		n.mustBeEmpty()
	})
	n.killed("delete", "killed before", func(i int) claim {
		c := next(100 + i)
		n.want(0, "provision", c)
		return c
	}, func(c claim, at string) {
		for _, path := range []string{n.path(c), n.base + "/.xfs/" + c.pv()} {
			if _, err := os.Stat(path); err == nil && len(n.projects()) != 1 {
				t.Errorf("%s: there is %s, and the limits are %v", at, path, n.projects())
			}
		}
		n.want(0, "delete", c)
		if n.mustBeEmpty(); t.Failed() {
			t.Fatal(at)
		}
	})
}
