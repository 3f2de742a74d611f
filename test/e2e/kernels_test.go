//go:build e2e && long && kernels

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// patience is by how much longer everything may take than on a machine that is busy: an emulated
// processor does it.
const patience = 5

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
	w.step("read by a second client", func() {
		equal(w.t, "what another pod reads", w.prints(claim, "cat /data/file"), "kept")
	})
	w.step("deleted", func() {
		w.deletePods("filler")
		w.deleteClaim(claim)
		w.vanished(claim)
		w.hasNoXFSVolume()
	})
	w.step("repeated after a kill", func() {
		w.mustRepeat("xfs")
		w.hasNoXFSVolume()
	})
}

func (w *world) hasNoXFSVolume() {
	w.t.Helper()
	left := w.onGuest("cd /var/lib/flex-volumes; find . | sort; xfs_quota -x -c 'report -p -N' .")
	equal(w.t, "what is left", strings.Join(strings.Fields(strings.Split(left, "#")[0]), " "),
		". ./.xfs ./.xfs/notes ./.xfs/projects")
}

// mustRepeat kills the run that makes a volume, and the one that deletes it. The next ones finish
// their work.
func (w *world) mustRepeat(class string, changes ...func(*corev1.PersistentVolumeClaim)) {
	w.t.Helper()
	w.killsARun()
	claim := w.claim(class, "killed", changes...)
	w.pod(shell("killed", guestNode, "echo kept >/data/file && sync && echo written", claim))
	w.printed("killed", "written")
	w.onGuest("! systemctl -q is-active killer")
	w.deletePods("killed")
	w.killsARun()
	w.deleteClaim(claim)
	w.vanished(claim)
	w.onGuest("! systemctl -q is-active killer")
}

// killsARun has node9 kill the script of the next run on it: a run has ended before a command from
// here is there. It reads new processes alone, 50 times a second: a loop of pkill was slower than a
// short script, and once missed it (TestKernelNFS).
func (w *world) killsARun() {
	w.t.Helper()
	w.onGuest(`cat >/run/killer.pl <<'END'
for (;;) {
	opendir my $proc, "/proc";
	for my $pid (grep { /^[0-9]+$/ && $_ > $$ } readdir $proc) {
		open my $file, "<", "/proc/$pid/cmdline" or next;
		exit if (<$file> // "") =~ m{^/bin/bash\0/etc/flex/script} && kill KILL => $pid;
	}
	select undef,undef,undef,0.02;
}
END
systemd-run -q --collect --unit=killer timeout 600 perl /run/killer.pl`)
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
	w.step("repeated after a kill", func() {
		w.mustRepeat("nfs", manyWriters)
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
