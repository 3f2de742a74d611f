//go:build e2e && long

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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a recipe needs of the deployment, test/e2e/recipes has: PART=recipes of hack/e2e-long.sh.

func ofSize(size string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// mustOnNode runs a script as root on a node.
func (w *world) mustOnNode(node, script string) string {
	w.t.Helper()
	out, err := onNode(w.ctx(), node, "sh", "-euc", script)
	w.must(err, "on node"+node+": "+script)
	return out
}

// hasBtrfs mounts a btrfs at the directory of a node's volumes. It is a file of the node's own.
func (w *world) hasBtrfs(node string) {
	w.t.Helper()
	disk := labState() + "/kube/node" + node + "/btrfs"
	w.remove(func() { w.mustOnNode(node, "umount -l /var/lib/flex-volumes; rm -f "+disk) })
	w.mustOnNode(node, "truncate -s 2G "+disk+"; mkfs.btrfs -q "+disk+"; mount -o loop "+disk+" /var/lib/flex-volumes")
}

// fills writes a file until its volume is full, and then again until there is room for all of it: until the volume has grown.
const fills = `echo kept >/data/file
if dd if=/dev/zero of=/data/large bs=1M count=%[1]d 2>/dev/null; then echo there is no limit; exit 1; fi
sync
echo full
until dd if=/dev/zero of=/data/large bs=1M count=%[1]d 2>/dev/null; do sleep 1; done
rm /data/large
sync
echo grown
sleep 3600`

// growsWhileMounted fills a claim's volume on a node, expands the claim, and waits until the pod that
// has it mounted has room.
func (w *world) growsWhileMounted(node string, claim *corev1.PersistentVolumeClaim, mebibytes int, size string) {
	w.t.Helper()
	w.pod(writable(shell("filler", node, fmt.Sprintf(fills, mebibytes), claim)))
	w.printed("filler", "full")
	w.bound(claim)
	w.ask(claim, size)
	w.grown(claim, `has `+size+` allocated `+size+` "" []`)
	w.printed("filler", "grown")
}

// A volume of the recipe docs/recipes/btrfs.md has its size, grows while a pod has it mounted, is
// cloned with its data, and leaves nothing.
func TestRecipeBtrfs(t *testing.T) {
	w := newWorld(t, "btrfs")
	w.hasBtrfs("1")
	w.apply("btrfs")
	claim := w.claim("btrfs", "data", ofSize("100Mi"))
	w.growsWhileMounted("node1", claim, 200, "300Mi")

	clone := w.claim("btrfs", "clone", ofSize("300Mi"), from("data"))
	equal(t, "the file in the clone", w.read(clone, "node1", "cat /data/file; echo changed >/data/file"), "kept\n")
	equal(t, "the clone's annotation", w.bound(clone).Annotations["flex-provisioner.io/clone-of"], w.ns+"/data")
	equal(t, "the file in its source", w.read(claim, "node1", "cat /data/file"), "kept\n")
	_ = w.read(clone, "node1", "if dd if=/dev/zero of=/data/large bs=1M count=400; then exit 1; fi")

	w.deletePods("filler")
	for _, c := range []*corev1.PersistentVolumeClaim{claim, clone} {
		w.deleteClaim(c)
		w.vanished(c)
	}
	equal(t, "what is left on the node", w.mustOnNode("1", "cd /var/lib/flex-volumes; find . | sort"), ".\n./.btrfs\n./.btrfs/notes")
	equal(t, "the quota groups that are left", w.mustOnNode("1", "btrfs qgroup show /var/lib/flex-volumes | grep -c ^64/ || true"), "0")
}

// node1 plays the NFS server of the recipe docs/recipes/nfs.md: its kernel has no NFS, so a process writes where the server would. A volume on its
// btrfs has its size, grows while it is written to, and leaves nothing.
func TestRecipeNFSOnBtrfs(t *testing.T) {
	w := newWorld(t, "nfs-btrfs")
	w.hasBtrfs("1")
	w.class(w.ns, expandable, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.copyOf(w.exampleConfig("nfs-btrfs", "nfs-btrfs"), func(data map[string]string) {
		data["node-selector"] = corev1.LabelHostname + "=node1"
	})
	claim := w.claim(w.ns, "data", manyWriters, ofSize("100Mi"))
	pv := w.bound(claim)
	equal(t, "the PV's source", fmt.Sprintf("%+v", *pv.Spec.NFS), "{Server:filer.example Path:/var/lib/flex-volumes/volumes/"+pv.Name+" ReadOnly:false}")
	equal(t, "its access modes", fmt.Sprint(pv.Spec.AccessModes), "[ReadWriteMany]")
	const fill = "cd %s; ! setpriv --reuid=1000 --regid=1000 --clear-groups dd if=/dev/zero of=file bs=1M count=%d conv=fsync 2>&1"
	contains(t, "a write of 200 MiB", w.mustOnNode("1", fmt.Sprintf(fill, pv.Spec.NFS.Path, 200)), "Disk quota exceeded")
	w.ask(claim, "300Mi")
	w.grown(claim, `has 300Mi allocated 300Mi "" []`)
	contains(t, "a write of 400 MiB", w.mustOnNode("1", fmt.Sprintf(fill, pv.Spec.NFS.Path, 400)), "Disk quota exceeded")
	equal(t, "whether there are more than 280 MiB", w.mustOnNode("1", "[ $(stat -c %s "+pv.Spec.NFS.Path+"/file) -gt $((280 << 20)) ] && echo yes"), "yes")
	w.deleteClaim(claim)
	w.vanished(claim)
	equal(t, "what is left on the server", w.mustOnNode("1", "cd /var/lib/flex-volumes; find . | sort"), ".\n./volumes")
}

// With the policy that the component of deploy/node-directories/btrfs changes, a pod gets that capability and no other.
func TestRecipeBtrfsAddsOneCapability(t *testing.T) {
	w := newWorld(t, "capability")
	for capability, allowed := range map[corev1.Capability]bool{"SYS_ADMIN": true, "FOWNER": true, "SYS_PTRACE": false, "MKNOD": false} {
		pod := shell("capable", "", "true", nil)
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{capability}},
		}
		_, err := kube.CoreV1().Pods(nodeNamespace).Create(w.ctx(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if refused := err != nil && strings.Contains(err.Error(), "must drop ALL capabilities, and may add only"); refused == allowed || err != nil && !refused {
			t.Errorf("a pod with %s: %v", capability, err)
		}
	}
}

// The file systems of the lab's nodes grow by xfs_growfs: resize2fs needs a capability of the machine that a container lacks.
func withXFS(w *world) string {
	w.class(w.ns, expandable, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace), parameter("fsType", "xfs"))
	w.copyOf(w.exampleConfig("loop", "loop"), func(map[string]string) {})
	return w.ns
}

// attaches waits until the DaemonSet of the recipe runs on all nodes.
func (w *world) attaches() {
	w.t.Helper()
	w.apply("loop")
	w.eventually(toBind, "the DaemonSet to run", func(ctx context.Context) error {
		set, err := kube.AppsV1().DaemonSets("flex-loop").Get(ctx, "loop-attacher", metav1.GetOptions{})
		if err == nil && int(set.Status.NumberAvailable) != len(nodes) {
			err = fmt.Errorf("%d pods are available", set.Status.NumberAvailable)
		}
		return err
	})
}

// A volume of the recipe docs/recipes/loop.md has its size, grows while a pod has it mounted, has
// its data after a reboot of its node, and leaves nothing.
func TestRecipeLoop(t *testing.T) {
	w := newWorld(t, "loop")
	w.attaches()
	claim := w.claim(withXFS(w), "data", ofSize("400Mi"))
	w.growsWhileMounted("node1", claim, 450, "600Mi")
	w.deletePods("filler")

	w.whenDone(func() { w.restore("1") })
	w.power("kill", "1")
	w.detachAll()
	w.restore("1")
	equal(t, "the file after a reboot", w.read(claim, "node1", "cat /data/file"), "kept\n")

	raw := w.claim("loop", "raw", ofSize("64Mi"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) })
	equal(t, "the device's size", strings.TrimSpace(w.read(raw, "node1", "blockdev --getsize64 /dev/data", asDevice)), "67108864")
	for _, c := range []*corev1.PersistentVolumeClaim{claim, raw} {
		w.deleteClaim(c)
		w.vanished(c)
		equal(t, "the disks of "+c.Name, strings.Join(w.disks(w.ctx(), string(c.UID)), " "), "")
	}
	equal(t, "what is left on the node", w.mustOnNode("1", "cd /var/lib/flex-volumes; find . | sort; ls /run/flex-loop"), ".\n./.loop\n./.loop/notes")
}

// disks returns the loop devices of files with a text in their names. All nodes share the machine's.
func (w *world) disks(ctx context.Context, text string) (out []string) {
	w.t.Helper()
	list, err := onNode(ctx, "2", "losetup", "--noheadings", "--output", "NAME,BACK-FILE")
	w.must(err, "list the loop devices")
	for line := range strings.Lines(list) {
		if name, file, found := strings.Cut(line, " "); found && strings.Contains(file, text) {
			out = append(out, name)
		}
	}
	return out
}

// detachAll does what the reboot of a machine does to its disks: those of a node of the lab are the
// machine's, and outlive it.
func (w *world) detachAll() {
	w.t.Helper()
	w.eventually(toBind, "the disks to be detached", func(ctx context.Context) error {
		disks := w.disks(ctx, "/.loop/pvc-")
		for _, disk := range disks {
			if _, err := onNode(ctx, "2", "losetup", "--detach", disk); err != nil {
				return err
			}
		}
		if len(disks) > 0 {
			return errors.New("there were some")
		}
		return nil
	})
}

// An image of the recipe docs/recipes/ceph-rbd.md is opened with nothing but what its PV and the
// Secret that this names hold. It grows, and a clone of it has its data without depending on it.
func TestRecipeCephRBD(t *testing.T) {
	w := newWorld(t, "ceph-rbd")
	w.apply("ceph-rbd")
	w.logsInToCeph()
	w.class(w.ns, expandable)
	w.copyOf(w.exampleConfig("ceph-rbd", "ceph-rbd"), func(data map[string]string) {
		data["monitors"] = "10.250.0.1"
		delete(data, "batch-size") // its account may write batches of the class ceph-rbd
	})

	claim := w.claim(w.ns, "data")
	original := w.image(claim)
	original.must("write -P 0x5a 0 1M", "flush")
	clone := w.image(w.claim(w.ns, "clone", from("data")))
	equal(t, "the clone's parent", clone.info().Parent.Image, "")
	clone.must("read -P 0x5a 0 1M", "write -P 0x11 0 1M")
	original.must("read -P 0x5a 0 1M")

	w.ask(claim, "2Gi")
	w.eventually(toBind, "the image to grow", func(ctx context.Context) error {
		size, err := ceph(ctx, "rbd", "info", "--format", "json", original.pool+"/"+original.name)
		if err == nil && !strings.Contains(size, `"size":2147483648,`) {
			err = errors.New(size)
		}
		return err
	})
	for _, c := range w.claims {
		w.deleteClaim(c)
		w.vanished(c)
	}
	if left := w.ceph("rbd", "--pool", original.pool, "ls"); strings.TrimSpace(left) != "" {
		t.Errorf("Ceph still has the images %s", left)
	}
}

// login makes a Secret by which a recipe logs in to its storage.
func (w *world) login(name string, files map[string]string) {
	w.t.Helper()
	_, err := kube.CoreV1().Secrets(ownNamespace).Create(w.ctx(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: files}, metav1.CreateOptions{})
	w.must(err, "create the Secret "+name)
	w.remove(func() {
		w.gone(kube.CoreV1().Secrets(ownNamespace).Delete(w.ctx(), name, metav1.DeleteOptions{}), "Secret "+name)
	})
}

func (w *world) logsInToCeph() {
	w.t.Helper()
	w.login("ceph-rbd", map[string]string{"userID": "cinder", "userKey": w.ceph("ceph", "auth", "get-key", "client.cinder")})
}

// hasBox starts the Linux box of test/cinder/san.sh.
func (w *world) hasBox() {
	w.t.Helper()
	w.remove(func() { w.box("down") })
	w.box("up")
}

// logsInToBox makes the Secret of a recipe over ssh, with the files of a key and of the box's name.
func (w *world) logsInToBox(name, key, knownHosts string) {
	w.t.Helper()
	files := map[string]string{"chap": "a secret of this test"}
	for file, path := range map[string]string{"key": key, "known_hosts": knownHosts} {
		content, err := os.ReadFile(path)
		w.must(err, "read what logs in to the box")
		files[file] = string(content)
	}
	w.login(name, files)
}

// inBox is the path of a file of the box of test/cinder/san.sh.
func inBox(file string) string { return filepath.Join(labState(), "cinder/box", file) }

func (w *world) box(what string) {
	w.t.Helper()
	out, err := exec.CommandContext(w.ctx(), "../cinder/san.sh", what).CombinedOutput()
	w.must(err, "san.sh "+what+": "+string(out))
}

// onBox runs a command there, over ssh.
func (w *world) onBox(command string) string {
	w.t.Helper()
	dir := filepath.Join(labState(), "cinder/box")
	out, err := exec.CommandContext(w.ctx(), "ssh", "-F", "none", "-i", dir+"/key", "-o", "UserKnownHostsFile="+dir+"/known_hosts", "-o", "BatchMode=yes", "root@"+boxAddress, command).CombinedOutput()
	w.must(err, "on the box: "+command+": "+string(out))
	return strings.TrimSpace(string(out))
}

const boxAddress = "10.250.0.3"

// growsOnNode does what an administrator does with the file system of a volume that has grown, and notes it on the PV.
func (w *world) growsOnNode(node string, pv *corev1.PersistentVolume, size string) {
	w.t.Helper()
	w.mustOnNode(node, "xfs_growfs $(grep ' xfs ' /proc/mounts | grep -m 1 "+pv.Spec.ISCSI.IQN+" | cut -d ' ' -f 2)")
	w.saysFileSystemHas(pv, size)
}

// saysFileSystemHas notes on the PV how large an administrator has made the file system.
func (w *world) saysFileSystemHas(pv *corev1.PersistentVolume, size string) {
	w.t.Helper()
	done := fmt.Sprintf(`{"metadata": {"annotations": {"flex-provisioner.io/file-system-size": %q}}}`, size)
	_, err := kube.CoreV1().PersistentVolumes().Patch(w.ctx(), pv.Name, types.MergePatchType, []byte(done), metav1.PatchOptions{})
	w.must(err, "say that the file system was grown")
}

// A volume of the recipe docs/recipes/iscsi-target.md is mounted by the kubelet of each node by nothing but its PV and the Secret that this names. It
// grows when no node is logged in, has its data afterwards, and leaves nothing on the box.
func TestRecipeISCSITarget(t *testing.T) {
	w := newWorld(t, "iscsi-target")
	w.hasBox()
	w.logsInToBox("iscsi-target", inBox("key"), inBox("known_hosts"))
	w.apply("iscsi-target")
	w.class(w.ns, expandable, parameter("fsType", "xfs")) // as the loop's
	w.copyOf(w.exampleConfig("iscsi-target", "iscsi-target"), func(data map[string]string) {
		data["box"], data["portal"] = "root@"+boxAddress, boxAddress
		delete(data, "batch-size") // its account may write batches of the class iscsi-target
	})
	claim := w.claim(w.ns, "data", ofSize("400Mi"))
	pv := w.bound(claim)
	w.pod(writable(shell("holder", "node1", "echo kept >/data/file; sync; echo written; sleep 3600", claim)))
	w.printed("holder", "written")
	contains(t, "tgtd's targets", w.onBox("tgtadm --lld iscsi --mode target --op show"), pv.Spec.ISCSI.IQN)
	w.ask(claim, "600Mi")
	w.eventWithin(toMount, claim, "VolumeResizeFailed", "the volume is in use, and can grow when it is not")
	w.deletePods("holder")
	w.grown(claim, `has 400Mi allocated 600Mi "NodeResizePending" [FileSystemResizePending]`)

	w.pod(writable(shell("filler", "node2", fmt.Sprintf("cat /data/file; "+fills, 450), claim)))
	contains(t, "the file on the other node", w.printed("filler", "full"), "kept\n")
	w.growsOnNode("2", pv, "600Mi")
	w.grown(claim, `has 600Mi allocated 600Mi "" []`)
	w.printed("filler", "grown")
	w.deletePods("filler")
	w.deleteClaim(claim)
	w.vanished(claim)
	equal(t, "what is left on the box", w.onBox("find /srv/flex-volumes /etc/tgt/conf.d; tgtadm --lld iscsi --mode target --op show"), "/srv/flex-volumes\n/srv/flex-volumes/.lock\n/etc/tgt/conf.d")
}

// printed waits until a pod has printed a word, and returns all that it has printed.
func (w *world) printed(pod, word string) string {
	w.t.Helper()
	var log []byte
	w.eventually(2*toBind, fmt.Sprintf("the pod %s to print %q", pod, word), func(ctx context.Context) (err error) {
		log, err = kube.CoreV1().Pods(w.ns).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err == nil && !strings.Contains(string(log), word) {
			err = fmt.Errorf("it has printed %q", log)
		}
		return err
	})
	return string(log)
}
