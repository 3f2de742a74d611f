//go:build e2e && long && kernels

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// usesGuestBox makes a class of a recipe over ssh whose box is the guest.
func (w *world) usesGuestBox(name string, change func(data map[string]string)) {
	w.t.Helper()
	w.logsInToBox(name, filepath.Join(labState(), "vm/key"), filepath.Join(labState(), "vm/known_hosts"))
	w.apply(name)
	w.class(w.ns, expandable, parameter("fsType", "ext4"))
	w.copyOf(w.exampleConfig(name, name), func(data map[string]string) {
		data["box"], data["portal"] = "root@"+guestBox, guestBox
		delete(data, "batch-size") // its account may write batches of its own class
		change(data)
	})
	w.onGuest("systemctl start iscsid")
}

// keepsWriting appends a line a second to a file, and says how many.
const keepsWriting = `i=0
while sleep 1; do
  i=$((i + 1))
  echo line $i >>/data/lines
  sync
  echo wrote $i
done`

// mustOutliveAPortal cuts the node off from the box for longer than the ping of iSCSI waits, while a
// pod writes.
func (w *world) mustOutliveAPortal(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	w.pod(writable(shell("writer", guestNode, keepsWriting, claim)))
	w.printed("writer", "wrote 3")
	w.onGuestBox(`
		iptables -I INPUT -p tcp --dport 3260 -j DROP
		sleep 30
		iptables -D INPUT -p tcp --dport 3260 -j DROP`)
	log := w.printed("writer", "wrote")
	last := strings.Count(log, "wrote")
	w.printed("writer", fmt.Sprintf("wrote %d\n", last+5))
	w.deletePods("writer")
	lines, err := strconv.Atoi(w.prints(claim, "wc -l </data/lines"))
	if err != nil || lines < last+5 {
		w.t.Errorf("the file has %d lines: %v", lines, err)
	}
}

// TestKernelISCSITgt is the recipe docs/recipes/iscsi-target.md by the kubelet's in-tree plugin and
// the initiator of the kernel.
func TestKernelISCSITgt(t *testing.T) {
	w := newWorld(t, "tgt")
	w.remove(func() { w.onGuestBox("systemctl stop tgt; rm -rf /srv/flex-volumes") })
	w.onGuestBox("systemctl stop rtslib-fb-targetctl; systemctl start tgt; mkdir -p /srv/flex-volumes")
	w.usesGuestBox("iscsi-target", func(map[string]string) {})
	claim := w.claim(w.ns, "data", ofSize("200Mi"))
	w.step("provisioned, mounted by the kernel, written", func() {
		mounts := w.prints(claim, "echo kept >/data/file; sync; grep ' /data ' /proc/mounts")
		contains(w.t, "the mount", mounts, " ext4 ")
		equal(w.t, "the sessions that are left", w.onGuest("iscsiadm -m session 2>/dev/null || true"), "")
	})
	w.step("a portal that goes away", func() { w.mustOutliveAPortal(claim) })
	w.step("grown", func() {
		w.ask(claim, "300Mi")
		w.grown(claim, `has 200Mi allocated 300Mi "NodeResizePending" [FileSystemResizePending]`)
		w.pod(writable(shell("holder", guestNode, "sleep 3600", claim)))
		w.eventually(toMount, "the pod to run", func(ctx context.Context) error { return runs(ctx, w.ns, "holder") })
		w.growsExt4(w.pv(claim), "300Mi")
		w.grown(claim, `has 300Mi allocated 300Mi "" []`)
		w.deletePods("holder")
		equal(w.t, "the file", w.prints(claim, "cat /data/file"), "kept")
	})
	w.step("deleted", func() {
		w.deleteClaim(claim)
		w.vanished(claim)
		equal(w.t, "what is left", w.onGuestBox(
			"ls /srv/flex-volumes; tgtadm --lld iscsi --mode target --op show"), "")
	})
}

// growsExt4 does what docs/configuration.md tells an administrator, on the node.
func (w *world) growsExt4(pv *corev1.PersistentVolume, size string) {
	w.t.Helper()
	w.onGuest("iscsiadm -m session -R >/dev/null; " +
		"resize2fs $(grep -m 1 '" + pv.Spec.ISCSI.IQN + "' /proc/mounts | cut -d ' ' -f 1) 2>&1")
	w.saysFileSystemHas(pv, size)
}

// TestKernelISCSILVM is the recipe docs/recipes/lvm.md, with LIO, by the kubelet's in-tree plugin.
// A volume grows while a pod uses it.
func TestKernelISCSILVM(t *testing.T) {
	w := newWorld(t, "lvm")
	w.remove(func() {
		w.onGuestBox("systemctl stop rtslib-fb-targetctl; vgremove -qqff vg; wipefs -qa /dev/vdb")
	})
	w.onGuestBox(`
		systemctl stop tgt
		vgcreate -q --metadatasize 64m vg /dev/vdb
		lvcreate -q --type thin-pool --size 1G --name flex vg
		systemctl start rtslib-fb-targetctl`)
	w.usesGuestBox("lvm", func(map[string]string) {})
	claim := w.claim(w.ns, "data", ofSize("200Mi"))
	w.step("provisioned, mounted by the kernel, written", func() {
		mounts := w.prints(claim, "echo kept >/data/file; sync; grep ' /data ' /proc/mounts")
		contains(w.t, "the mount", mounts, " ext4 ")
	})
	w.step("a portal that goes away", func() { w.mustOutliveAPortal(claim) })
	w.step("grown", func() {
		w.pod(writable(shell("holder", guestNode, "sleep 3600", claim)))
		w.eventually(toMount, "the pod to run", func(ctx context.Context) error { return runs(ctx, w.ns, "holder") })
		w.ask(claim, "300Mi")
		w.grown(claim, `has 200Mi allocated 300Mi "NodeResizePending" [FileSystemResizePending]`)
		w.growsExt4(w.pv(claim), "300Mi")
		w.grown(claim, `has 300Mi allocated 300Mi "" []`)
		w.deletePods("holder")
	})
	clone := w.claim(w.ns, "clone", ofSize("300Mi"), from("data"))
	w.step("cloned", func() {
		equal(w.t, "the file of the clone", w.prints(clone, "cat /data/file; echo changed >/data/file"), "kept")
		equal(w.t, "the file of its source", w.prints(claim, "cat /data/file"), "kept")
	})
	w.step("deleted", func() {
		for _, c := range []*corev1.PersistentVolumeClaim{claim, clone} {
			w.deleteClaim(c)
			w.vanished(c)
		}
		equal(w.t, "what is left", w.onGuestBox("lvs --noheadings -o lv_name vg | tr -d ' '; "+
			"ls -d /sys/kernel/config/target/iscsi/iqn* 2>/dev/null || true"), "flex")
	})
}

// TestKernelMultipath is a volume of Cinder that is exported through two portals: the kernel has one
// disk of two paths, and a pod writes on while one of them is cut.
func TestKernelMultipath(t *testing.T) {
	w := newWorld(t, "multipath")
	w.class(w.ns, parameter("type", "lvmmp"))
	w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"multipath": "true"}))
	const cut = " OUTPUT -d 10.250.0.2 -p tcp --dport 3260 -j DROP"
	w.whenDone(func() { w.onGuest("iptables -D" + cut + " 2>/dev/null || true") })
	w.remove(func() { w.onGuest("systemctl stop multipathd; rm -f /etc/multipath.conf") })
	w.onGuest(`
		printf '%s\n' 'defaults {' 'find_multipaths yes' '}' >/etc/multipath.conf
		systemctl start iscsid multipathd`)
	claim := w.claim(w.ns, "data")
	w.step("provisioned, mounted by the kernel, written", func() {
		w.bound(claim)
		w.pod(writable(shell("writer", guestNode, keepsWriting, claim)))
		w.printed("writer", "wrote 3")
		mounted := w.onGuest("grep -m 1 " + w.pv(claim).Name + " /proc/mounts")
		if !strings.HasPrefix(mounted, "/dev/dm-") && !strings.HasPrefix(mounted, "/dev/mapper/") {
			w.t.Errorf("one path is mounted alone: %s", mounted)
		}
		w.must(w.hasPaths(w.ctx(), 2), "both paths")
	})
	w.step("a path that is cut", func() {
		w.onGuest("iptables -I" + cut)
		w.eventually(toMount, "one path to fail", func(ctx context.Context) error { return w.hasPaths(ctx, 1) })
		last := strings.Count(w.printed("writer", "wrote"), "wrote")
		w.printed("writer", fmt.Sprintf("wrote %d\n", last+5))
		w.onGuest("iptables -D" + cut)
		w.eventually(toMount, "both paths to work", func(ctx context.Context) error { return w.hasPaths(ctx, 2) })
	})
	w.step("deleted", func() {
		w.deletePods("writer")
		w.deleteClaim(claim)
		w.vanished(claim)
		w.eventually(toMount, "no disk to be left", func(ctx context.Context) error { return w.hasPaths(ctx, 0) })
		equal(w.t, "the sessions that are left", w.onGuest("iscsiadm -m session 2>/dev/null || true"), "")
	})
}

// hasPaths returns an error unless so many paths work, of all disks of node9.
func (w *world) hasPaths(ctx context.Context, want int) error {
	w.t.Helper()
	said, err := onNode(ctx, "9", "sh", "-euc", "multipath -ll | tr -s ' '")
	if got := strings.Count(said, "active ready running"); err == nil && got != want {
		err = fmt.Errorf("%d paths work", got)
	}
	return err
}
