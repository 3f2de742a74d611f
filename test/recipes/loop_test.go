//go:build recipes

package recipes

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newLoop(t *testing.T) *node {
	t.Helper()
	n := newNode(t, "scripts/loop-provisioner.sh", "mkfs.xfs", "-q")
	n.runs("install", "-m", "755", "../../scripts/loop-attacher.sh", n.root+"/attach")
	n.runs("mkdir", "-p", n.root+"/run/flex-loop") // as the hostPath of the DaemonSet does
	return n
}

// attacher starts the process that the DaemonSet runs on each node, and returns what ends it.
func (n *node) attacher() (end func(how syscall.Signal)) {
	n.t.Helper()
	command := exec.CommandContext(n.t.Context(), "/attach")
	command.Env, command.Dir = []string{"PATH=/bin", "FLEX_BASE_DIR=" + volumes}, "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: n.root, Setpgid: true}
	command.Stderr = os.Stderr
	n.must(command.Start())
	ended := false
	end = func(how syscall.Signal) {
		if ended {
			return
		}
		ended = true
		_ = syscall.Kill(-command.Process.Pid, how)
		_ = command.Wait()
	}
	n.t.Cleanup(func() { end(syscall.SIGKILL) })
	return end
}

// disks returns the loop devices of a volume's file, also of one that was removed.
func (n *node) disks(c claim) (out []string) {
	n.t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	n.must(err)
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "/"+c.pv()+".img") {
			out = append(out, "/dev/"+strings.Split(file, "/")[3])
		}
	}
	return out
}

// releases detaches what a failed test leaves.
func (n *node) releases(c claim) {
	n.t.Cleanup(func() {
		for _, disk := range n.disks(c) {
			n.detaches(disk)
		}
	})
}

// detaches frees a disk, and before it what the attacher has put on top of it.
func (n *node) detaches(disk string) {
	n.t.Helper()
	for top := range strings.FieldsSeq(n.runs("losetup", "--noheadings", "--output", "NAME", "--associated", disk)) {
		n.runs("losetup", "--detach", top)
	}
	n.runs("losetup", "--detach", disk)
}

// bytesOf returns the size of the only disk of a volume.
func (n *node) bytesOf(c claim) string {
	n.t.Helper()
	disks := n.disks(c)
	if len(disks) != 1 {
		n.t.Fatalf("the volume has the disks %q", disks)
	}
	return strings.TrimSpace(n.runs("blockdev", "--getsize64", disks[0]))
}

// ownDisk fails the test unless the path of the PV leads to the volume's own disk.
func (n *node) ownDisk(c claim) string {
	n.t.Helper()
	first, err := os.Readlink(n.base + "/" + c.pv())
	n.must(err)
	second := ""
	for range 50 { // until it is attached and named, as the kubelet tries again
		if second, err = os.Readlink(n.root + first); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if disks := fmt.Sprint(n.disks(c)); err != nil || disks != "["+second+"]" {
		n.t.Fatalf("the PV leads to %s, %s (%v), and its disks are %s", first, second, err, disks)
	}
	return second
}

func TestLoopVolumeHasItsSizeGrowsAndIsDeleted(t *testing.T) {
	n := newLoop(t)
	end := n.attacher()
	c := claim{uid: number(0x1001), size: 320*mib - 100}
	n.releases(c)
	for range 2 {
		n.want(0, "provision", c)
	}
	disk := n.ownDisk(c)
	if got := n.bytesOf(c); got != fmt.Sprint(320*mib) || !n.hasPV(c) {
		t.Errorf("the disk has %s bytes, and there is a PV: %t", got, n.hasPV(c))
	}
	mounted := n.root + "/mounted"
	n.runs("mkfs.xfs", "-q", disk)
	n.runs("mkdir", mounted)
	n.runs("mount", disk, mounted)
	t.Cleanup(func() { _, _ = n.tries("umount", mounted) })
	before := n.fill(mounted+"/file", 400)
	if before > 320*mib {
		t.Errorf("%d bytes were written to a volume of 320 MiB", before)
	}
	c.size = 400 * mib
	for range 2 {
		n.want(0, "expand", c)
	}
	n.runs("xfs_growfs", mounted) // as the kubelet does
	if got := n.fill(mounted+"/file", 500); got > 400*mib || got < before+40*mib {
		t.Errorf("%d bytes were written to a volume that has grown to 400 MiB, and %d before", got, before)
	}
	c.size = 320 * mib
	n.want(0, "expand", c, grownTo(400*mib)) // an expand never shrinks
	if got := n.bytesOf(c); got != fmt.Sprint(400*mib) {
		t.Errorf("the disk has %s bytes", got)
	}
	end(syscall.SIGKILL)
	n.attacher() // another pod of the DaemonSet
	n.want(75, "delete", c, "claim: the volume is in use")
	n.runs("umount", mounted)
	for range 2 {
		n.want(0, "delete", c)
	}
	n.hasNoFiles()
}

// hasNoFiles fails the test unless nothing is left of any volume.
func (n *node) hasNoFiles() {
	n.t.Helper()
	if left := strings.TrimSpace(n.left()); left != "./.loop\n./.loop/notes" {
		n.t.Errorf("left: %s", left)
	}
	var links []string
	for range 50 { // of a disk that the kernel has detached by itself, the link is removed a second later
		if links, _ = filepath.Glob(n.root + "/run/flex-loop/*"); len(links) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	n.t.Errorf("left: %v", links)
}

// After a reboot the kernel has no disk, and another volume may get the one that a volume had: until
// its own is attached, the path of a PV leads to none.
func TestLoopVolumeHasItsOwnDiskOrNoneAfterAReboot(t *testing.T) {
	n := newLoop(t)
	end := n.attacher()
	a, b := claim{uid: number(0x2001), size: 16 * mib}, claim{uid: number(0x2002), size: 16 * mib}
	for _, c := range []claim{a, b} {
		n.releases(c)
		n.want(0, "provision", c)
		n.runs("sh", "-c", fmt.Sprintf("echo data of %s >.%s", c.pv(), n.ownDisk(c)))
	}
	end(syscall.SIGKILL)
	for _, c := range []claim{a, b} {
		n.detaches(n.ownDisk(c))
	}
	n.runs("sh", "-c", "rm run/flex-loop/*") // a file system in memory
	for _, c := range []claim{a, b} {
		first, err := os.Readlink(n.base + "/" + c.pv())
		n.must(err)
		if _, err := os.Stat(n.root + first); !os.IsNotExist(err) {
			t.Errorf("without a disk the PV leads to %s, %v", first, err)
		}
	}
	n.attacher()
	for _, c := range []claim{b, a} {
		n.want(0, "expand", c) // waits until the file is attached
		if got := n.runs("head", "-c", "60", n.ownDisk(c)); !strings.HasPrefix(got, "data of "+c.pv()+"\n") {
			t.Errorf("the disk of %s has %q", c.pv(), got)
		}
		n.want(0, "delete", c)
	}
	n.hasNoFiles()
}

// A pod that has a raw device may detach it: the kernel asks for no capability. The path of its volume never leads to what becomes the disk of
// another volume, or of the kubelet, whether the process on the node runs, was ended or killed.
func TestLoopPodThatDetachesItsDiskReachesNoOther(t *testing.T) {
	for name, how := range map[string]syscall.Signal{"at work": 0, "ended": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			n := newLoop(t)
			end := n.attacher()
			c := claim{uid: number(0x5001), size: 16 * mib, more: map[string]string{"FLEX_VOLUME_MODE": "Block"}}
			n.releases(c)
			n.want(0, "provision", c)
			disk, pods := n.ownDisk(c), n.root+"/pods-disk"
			n.runs("mknod", "-m", "666", pods, "b", "7", strings.TrimPrefix(disk, "/dev/loop"))
			n.runs("truncate", "-s", "16M", n.root+"/other.img")
			if how != 0 {
				end(how)
			}
			n.unprivileged("losetup", "--detach", pods)
			other := strings.TrimSpace(n.runs("losetup", "--find", "--show", n.root+"/other.img"))
			t.Cleanup(func() { _, _ = n.tries("losetup", "--detach", other) })
			if other == disk || n.ownDisk(c) != disk {
				t.Fatalf("a pod has detached its disk %s, and the next one is %s", disk, other)
			}
			n.attacher()
			n.want(0, "provision", c)
			n.ownDisk(c)
			n.want(0, "delete", c)
			n.hasNoFiles()
		})
	}
}

// Only root of the node can read what is in a volume beside its pods.
func TestLoopFilesAreRootsOwn(t *testing.T) {
	n := newLoop(t)
	n.attacher()
	c := claim{uid: number(0x5002), size: 16 * mib}
	n.releases(c)
	n.want(0, "provision", c)
	info, err := os.Stat(n.base + "/.loop/" + c.pv() + ".img")
	n.must(err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file has the mode %v", info.Mode())
	}
	n.want(0, "delete", c)
}

func TestLoopRefusesWhatItCannotCreate(t *testing.T) {
	n := newLoop(t)
	n.want(0, "list", claim{}, `{"lines":0}`)
	n.want(65, "provision", claim{uid: number(0x3001), size: mib, more: map[string]string{"FLEX_ACCESS_MODES": "ReadWriteMany"}}, "request ReadWriteOnce")
	n.want(73, "provision", claim{uid: number(0x3001), size: 8 << 30}, "less than 8589934592 bytes free")
	n.want(73, "provision", claim{uid: number(0x3001), size: math.MaxInt64}, "less than 9223372036854775807 bytes free")
	for fsType, least := range map[string]int64{"xfs": 300, "btrfs": 109} {
		small := claim{uid: number(0x3001), size: (least - 1) * mib, more: map[string]string{"FLEX_FSTYPE": fsType}}
		n.want(65, "provision", small, fmt.Sprintf("request at least %dMi", least))
		small.size++ // rounded up to the least, it comes as far as the disk
		n.want(75, "provision", small, "no pod of the DaemonSet loop-attacher works")
		n.want(0, "delete", small)
	}
	n.want(64, "snapshot", claim{uid: number(0x3001)})
	n.want(0, "delete", claim{uid: number(0x3001)})
	c := claim{uid: number(0x3002), size: mib}
	n.want(75, "provision", c, "no pod of the DaemonSet loop-attacher works on the node node1")
	if n.hasPV(c) {
		t.Error("there is a PV without a disk")
	}
	n.want(0, "list", claim{}, number(0x3002))
	for _, c.size = range []int64{8 << 30, math.MaxInt64} { // its pods would fill the node, and others lose data
		n.want(73, "expand", c, "bytes free")
	}
	n.want(0, "delete", c)
}

// A run that is killed at any call of a program is completed by a repetition, and a delete leaves
// nothing.
func TestLoopIsKilledAtEachStep(t *testing.T) {
	n := newLoop(t)
	n.attacher()
	made := func(i int) claim {
		c := claim{uid: number(0x4000 + i), size: 16 * mib}
		n.releases(c)
		return c
	}
	again := func(c claim, _ string) {
		n.want(0, "provision", c)
		n.ownDisk(c)
		n.want(0, "delete", c)
	}
	n.killed("provision", "killed before", made, again)
	n.killed("provision", "failure", made, again)
	n.killed("provision", "killed before", made, func(c claim, _ string) { n.want(0, "delete", c) })
	n.killed("delete", "killed before", func(i int) claim {
		c := made(i)
		n.want(0, "provision", c)
		return c
	}, func(c claim, _ string) { n.want(0, "delete", c) })
	n.hasNoFiles()
}

// A volume whose file was lost has not grown: an empty disk in its place would be given to its pod.
func TestLoopExpandCreatesNoVolume(t *testing.T) {
	n := newLoop(t)
	n.attacher()
	c := claim{uid: number(0x5001), size: 16 * mib}
	n.releases(c)
	n.want(0, "provision", c)
	n.must(os.Remove(n.base + "/.loop/" + c.pv() + ".img"))
	c.size = 32 * mib
	if code, says := n.try("expand", c); code == 0 || code == 64 {
		t.Errorf("exit %d: %s", code, says)
	}
	if _, err := os.Stat(n.base + "/.loop/" + c.pv() + ".img"); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
	n.want(0, "delete", c)
	n.hasNoFiles()
}

// Where two nodes share a kernel, or two of these programs a node, the other one may detach the disk.
func TestLoopLinkDoesNotOutliveItsFileOrItsDisk(t *testing.T) {
	n := newLoop(t)
	end := n.attacher()
	c, other := claim{uid: number(0x6001), size: 16 * mib}, claim{uid: number(0x6002), size: 16 * mib}
	for _, c := range []claim{c, other} {
		n.releases(c)
		n.want(0, "provision", c)
	}
	disk := n.ownDisk(c)
	end(syscall.SIGKILL)
	n.must(os.Remove(n.base + "/.loop/" + c.pv() + ".img"))
	n.runs("losetup", "--detach", disk)
	n.must(os.Remove(n.root + "/run/flex-loop/" + other.pv()))
	n.attacher()
	n.want(0, "delete", c)
	n.ownDisk(other)
	n.want(0, "delete", other)
	n.hasNoFiles()
}

// An audit asks for one volume, by the line of a list.
func TestLoopDeletesNoOtherVolumeThanTheListedOne(t *testing.T) {
	n := newLoop(t)
	n.attacher()
	c := claim{uid: number(0x7003), size: 16 * mib}
	n.releases(c)
	n.deletesTheListed(c)
	n.hasNoFiles()
}
