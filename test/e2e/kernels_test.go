//go:build e2e && long && kernels

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What our PVs say is mounted by a kubelet on Debian's own kernel: node9 of the cluster is an
// emulated machine, and so is the box that has storage. PART=kernels of hack/e2e-long.sh has both.

const (
	guestNode = "node9"
	guestBox  = "10.250.0.41"
)

// An emulated processor, on a machine that is busy.
func init() { patience = 5 }

// onGuestBox runs a script of sh on the box, as root.
func (w *world) onGuestBox(script string) string {
	w.t.Helper()
	command := exec.CommandContext(w.ctx(), "../vm/ssh.sh", "box", "exec sh -eu -s")
	command.Stdin = strings.NewReader("export LC_ALL=C\n" + script + "\n")
	out, err := command.CombinedOutput()
	w.must(err, "on the box: "+script+": "+string(out))
	return strings.TrimSpace(string(out))
}

// onGuest runs a script as root on node9.
func (w *world) onGuest(script string) string {
	w.t.Helper()
	return w.mustOnNode("9", script)
}

// step is a part of a test, and cells of the table that PART=kernels prints. The next one needs it.
func (w *world) step(cell string, do func()) {
	w.t.Helper()
	whole := w.t
	passed := whole.Run(cell, func(t *testing.T) {
		w.t = t
		do()
	})
	w.t = whole
	if !passed {
		whole.FailNow()
	}
}

// prints returns what a command in a pod of the claim prints on node9.
func (w *world) prints(claim *corev1.PersistentVolumeClaim, command string) string {
	w.t.Helper()
	return strings.TrimSpace(w.read(claim, guestNode, command))
}

// hasXFS mounts an XFS with project quotas where node9 has volumes.
func (w *world) hasXFS() {
	w.t.Helper()
	w.remove(func() { w.onGuest("umount /var/lib/flex-volumes; wipefs -qa /dev/vdb") })
	w.onGuest("mkfs.xfs -qf /dev/vdb; mount -o prjquota /dev/vdb /var/lib/flex-volumes")
}

// TestKernelXFS is the recipe docs/recipes/xfs.md by the kubelet of a node. What it says of a
// volume's size, the metrics of the kubelet say, too.
func TestKernelXFS(t *testing.T) {
	w := newWorld(t, "xfs")
	w.hasXFS()
	w.apply("xfs")
	claim := w.claim("xfs", "data", ofSize("100Mi"))
	w.step("provisioned, mounted by the kernel, written, grown", func() {
		w.growsWhileMounted(guestNode, claim, 200, "300Mi")
	})
	w.step("its size in df and metrics", func() {
		df := w.prints(claim, "df -k /data | tail -n 1 | awk '{ print $2 }'")
		equal(w.t, "the size in KiB that df shows", df, fmt.Sprint(300<<10))
		w.hasMetric("kubelet_volume_stats_capacity_bytes", claim, "3.145728e+08")
	})
	w.step("deleted", func() {
		w.deletePods("filler")
		w.deleteClaim(claim)
		w.vanished(claim)
		left := w.onGuest("cd /var/lib/flex-volumes; find . | sort; xfs_quota -x -c 'report -p -N' .")
		equal(w.t, "what is left", strings.Join(strings.Fields(strings.Split(left, "#")[0]), " "),
			". ./.xfs ./.xfs/notes ./.xfs/projects")
	})
}

// hasMetric waits until the kubelet of node9 says this of a claim's volume, which it looks at once a
// minute.
func (w *world) hasMetric(name string, claim *corev1.PersistentVolumeClaim, value string) {
	w.t.Helper()
	want := fmt.Sprintf("%s{namespace=%q,persistentvolumeclaim=%q} %s", name, w.ns, claim.Name, value)
	w.eventually(toMount, want, func(ctx context.Context) error {
		all, err := kube.CoreV1().RESTClient().Get().Resource("nodes").Name(guestNode).
			SubResource("proxy").Suffix("metrics").DoRaw(ctx)
		if err == nil && !strings.Contains(string(all), want) {
			err = errors.New("the kubelet does not say so")
		}
		return err
	})
}

// exports has the box export a directory by NFS, as docs/first-image.md says.
func (w *world) exports() {
	w.t.Helper()
	w.remove(func() {
		w.onGuestBox("systemctl stop nfs-server; rm -rf /etc/exports.d/flex.exports /exports")
	})
	w.onGuestBox(`
		mkdir -p /exports/kubernetes /etc/exports.d
		chown 65532:65532 /exports/kubernetes
		options=rw,sync,no_subtree_check,all_squash,anonuid=65532,anongid=65532
		echo "/exports/kubernetes *($options)" >/etc/exports.d/flex.exports
		systemctl restart nfs-server`)
}

// mountsByNFS replaces the server of an example by another.
func (w *world) mountsByNFS(name, server string) {
	w.t.Helper()
	text, err := os.ReadFile("../../configmaps/" + name + ".yaml")
	w.must(err, "read the example")
	file := filepath.Join(w.t.TempDir(), name+".yaml")
	changed := strings.ReplaceAll(string(text), "filer.example", server)
	changed = strings.ReplaceAll(changed, "node-restriction.kubernetes.io/flex-storage-network=true",
		corev1.LabelHostname+"="+guestNode)
	w.must(os.WriteFile(file, []byte(changed), 0o600), "write it")
	w.applyFile(file)
}

// TestKernelNFS is the recipe docs/recipes/nfs.md with a real server: the pods of runs and of users
// mount it, and another machine reads and writes the same volume.
func TestKernelNFS(t *testing.T) {
	w := newWorld(t, "nfs")
	w.exports()
	w.mountsByNFS("nfs", guestBox)
	w.remove(func() { w.removeJobsThatMount("nfs-export") })
	claim := w.claim("nfs", "data", manyWriters)
	w.step("provisioned", func() { w.bound(claim) })
	w.step("mounted by the kernel, written, read by a second client", func() {
		w.pod(shell("holder", guestNode, "echo of node9 >/data/one; sync; grep ' /data ' /proc/mounts; "+
			"echo mounted; until [ -e /data/two ]; do sleep 1; done; cat /data/two; echo seen; sleep 3600", claim))
		contains(w.t, "the mount", w.printed("holder", "mounted"), " nfs4 ")
		path := w.pv(claim).Spec.NFS.Path
		got := w.onGuestBox(`
			mkdir -p /mnt/client
			mount -t nfs4 "` + guestBox + ":" + path + `" /mnt/client
			cat /mnt/client/one
			echo of the box >/mnt/client/two
			umount /mnt/client`)
		equal(w.t, "what the other client reads", got, "of node9")
		contains(w.t, "what the pod reads", w.printed("holder", "seen"), "of the box")
	})
	w.step("deleted", func() {
		w.deletePods("holder")
		w.deleteClaim(claim)
		w.vanished(claim)
		equal(w.t, "what is left", w.onGuestBox("find /exports/kubernetes/volumes"), "/exports/kubernetes/volumes")
	})
}

// TestKernelNFSOnXFS is the recipe nfs-btrfs with quota: xfs. node9 is the server, and the box is
// another client.
func TestKernelNFSOnXFS(t *testing.T) {
	w := newWorld(t, "nfs-xfs")
	w.hasXFS()
	w.remove(func() {
		w.onGuest("systemctl stop nfs-server; rm -f /etc/exports.d/flex.exports")
	})
	w.onGuest(`
		mkdir -p /etc/exports.d
		echo '/var/lib/flex-volumes *(rw,sync,no_subtree_check,no_root_squash,mountpoint)' \
		  >/etc/exports.d/flex.exports
		systemctl restart nfs-server`)
	w.class(w.ns, expandable, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.copyOf(w.exampleConfig("nfs-btrfs", "nfs-btrfs"), func(data map[string]string) {
		data["node-selector"] = corev1.LabelHostname + "=" + guestNode
		data["nfs-server"] = nodeAddress
		data["quota"] = "xfs"
	})
	claim := w.claim(w.ns, "data", manyWriters, ofSize("100Mi"))
	w.step("provisioned, mounted by the kernel, written, grown", func() {
		w.growsWhileMounted(guestNode, claim, 200, "300Mi")
	})
	w.step("read by a second client", func() {
		path := w.pv(claim).Spec.NFS.Path
		got := w.onGuestBox(`
			mkdir -p /mnt/client
			mount -t nfs4 "` + nodeAddress + ":" + path + `" /mnt/client
			df --output=size -B1M /mnt/client | tail -n 1
			dd if=/dev/zero of=/mnt/client/large bs=1M count=400 conv=fsync 2>&1 || true
			umount /mnt/client`)
		contains(w.t, "what df shows", strings.TrimSpace(got), "300")
		contains(w.t, "a write of 400 MiB", got, "No space left on device")
	})
	w.step("deleted", func() {
		w.deletePods("filler")
		w.deleteClaim(claim)
		w.vanished(claim)
		equal(w.t, "what is left", w.onGuest("cd /var/lib/flex-volumes; find . | sort"), ".\n./volumes")
	})
}

const nodeAddress = "10.250.0.19"

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
		equal(w.t, "its paths", w.paths(), 2)
	})
	w.step("a path that is cut", func() {
		w.onGuest("iptables -I" + cut)
		w.eventually(toMount, "one path to fail", func(context.Context) error { return w.hasPaths(1) })
		last := strings.Count(w.printed("writer", "wrote"), "wrote")
		w.printed("writer", fmt.Sprintf("wrote %d\n", last+5))
		w.onGuest("iptables -D" + cut)
		w.eventually(toMount, "both paths to work", func(context.Context) error { return w.hasPaths(2) })
	})
	w.step("deleted", func() {
		w.deletePods("writer")
		w.deleteClaim(claim)
		w.vanished(claim)
		w.eventually(toMount, "no disk to be left", func(context.Context) error { return w.hasPaths(0) })
		equal(w.t, "the sessions that are left", w.onGuest("iscsiadm -m session 2>/dev/null || true"), "")
	})
}

// paths returns how many paths work, of all disks of node9.
func (w *world) paths() int {
	w.t.Helper()
	return strings.Count(w.onGuest("multipath -ll | tr -s ' '"), "active ready running")
}

func (w *world) hasPaths(want int) error {
	if got := w.paths(); got != want {
		return fmt.Errorf("%d paths work", got)
	}
	return nil
}
