//go:build e2e && long && kernels

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PART=selinux of hack/e2e-long.sh has a node9 that enforces SELinux, with Debian's own policy.
// docs/clusters.md says what these tests saw.

// ofLevel gives a pod an SELinux level.
func ofLevel(level string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Level: level}
	}
}

const (
	oneLevel     = "s0:c1,c2"
	anotherLevel = "s0:c3,c4"
)

func newSELinuxWorld(t *testing.T, name string) *world {
	t.Helper()
	w := newWorld(t, name)
	equal(t, "the mode of SELinux", w.onGuest("getenforce"), "Enforcing")
	return w
}

// labels returns the types and levels that a volume's directory and its file have on node9.
func (w *world) labels(dir string) string {
	w.t.Helper()
	return w.onGuest("stat -c %C " + dir + " " + dir + "/file | cut -d : -f 3- | sort -u")
}

// TestSELinuxDirectory follows the commands of docs/clusters.md.
func TestSELinuxDirectory(t *testing.T) {
	w := newSELinuxWorld(t, "selinux")
	w.remove(func() {
		w.onGuest("semanage fcontext -d '/var/lib/flex-volumes(/.*)?'; rm -rf /var/lib/flex-volumes/*")
	})
	w.onGuest("rm -rf /var/lib/flex-volumes/*; restorecon -R -F /var/lib/flex-volumes")
	w.apply("node-directory")
	claim := w.claim("node-directory", "data")
	early := shell("early", guestNode, "true", claim)
	w.step("refused without a label", func() {
		w.pod(early)
		w.eventWithin(toMount, claim, "ProvisioningFailed", "exit code 1")
	})
	w.step("provisioned", func() {
		w.onGuest(`
			semanage fcontext -a -t container_file_t '/var/lib/flex-volumes(/.*)?'
			restorecon -R -v /var/lib/flex-volumes`)
		w.bound(claim)
		w.output("early")
		w.deletePods("early")
	})
	w.step("mounted by the kernel, written, read by a second client", func() {
		w.read(claim, guestNode, "echo one >/data/file", ofLevel(oneLevel))
		dir := w.pv(claim).Spec.Local.Path
		equal(t, "the labels", w.labels(dir), "container_file_t:"+oneLevel)
		equal(t, "what another pod reads", w.read(claim, guestNode, "cat /data/file", ofLevel(anotherLevel)), "one\n")
		equal(t, "the labels", w.labels(dir), "container_file_t:"+anotherLevel)
	})
	w.step("not deleted without all categories", func() {
		w.deleteClaim(claim)
		w.eventWithin(toMount, w.pv(claim), "VolumeFailedDelete", "exit code 75")
	})
	w.step("deleted", func() {
		w.hasAllCategories()
		w.vanished(claim)
		equal(t, "what is left", w.onGuest("ls /var/lib/flex-volumes"), "")
	})
}

// hasAllCategories gives the pods of the runs of node-directory the level that docs/clusters.md names.
func (w *world) hasAllCategories() {
	w.t.Helper()
	text, err := os.ReadFile("../../configmaps/node-directory.yaml")
	w.must(err, "read the example")
	const user = "securityContext: {runAsNonRoot: false, runAsUser: 0, runAsGroup: 0"
	changed := strings.Replace(string(text), user, user+`, seLinuxOptions: {level: "s0:c0.c1023"}`, 1)
	file := filepath.Join(w.t.TempDir(), "node-directory.yaml")
	w.must(os.WriteFile(file, []byte(changed), 0o600), "write it")
	w.applyFile(file)
}

func TestSELinuxNFS(t *testing.T) {
	w := newSELinuxWorld(t, "selinux-nfs")
	w.exports()
	w.mountsByNFS("nfs", guestBox)
	w.remove(func() {
		w.removeJobsThatMount("nfs-export")
		w.onGuest("setsebool container_use_nfs off")
	})
	claim := w.claim("nfs", "data", manyWriters)
	w.step("refused while containers may not use NFS", func() {
		w.eventWithin(toMount, claim, "ProvisioningFailed", "exit code 1")
	})
	w.step("provisioned", func() {
		w.onGuest("setsebool container_use_nfs on")
		w.bound(claim)
	})
	w.step("mounted by the kernel, written, read by a second client", func() {
		holder := writable(shell("holder", guestNode, "echo one >/data/one; grep ' /data ' /proc/mounts; "+
			"echo mounted; until [ -e /data/two ]; do sleep 1; done; echo seen; sleep 3600", claim))
		ofLevel(oneLevel)(&holder.Spec)
		w.pod(holder)
		contains(t, "the mount", w.printed("holder", "mounted"), " nfs4 ")
		got := w.read(claim, guestNode, "cat /data/one; echo two >/data/two", ofLevel(anotherLevel))
		equal(t, "what a pod of another level reads", got, "one\n")
		w.printed("holder", "seen")
	})
	w.step("deleted", func() {
		w.deletePods("holder")
		w.deleteClaim(claim)
		w.vanished(claim)
	})
}

func TestSELinuxISCSI(t *testing.T) {
	w := newSELinuxWorld(t, "selinux-tgt")
	w.remove(func() { w.onGuestBox("systemctl stop tgt; rm -rf /srv/flex-volumes") })
	w.onGuestBox("systemctl stop rtslib-fb-targetctl; systemctl start tgt; mkdir -p /srv/flex-volumes")
	w.usesGuestBox("iscsi-target", func(map[string]string) {})
	claim := w.claim(w.ns, "data", ofSize("200Mi"))
	w.step("provisioned, mounted by the kernel, written", func() {
		holder := writable(shell("holder", guestNode, "echo one >/data/one; grep ' /data ' /proc/mounts; "+
			"echo mounted; sleep 3600", claim))
		ofLevel(oneLevel)(&holder.Spec)
		w.pod(holder)
		contains(t, "the mount", w.printed("holder", "mounted"), `context="system_u:object_r:container_file_t:`+oneLevel)
	})
	w.step("a pod of another level waits", func() {
		waiting := writable(shell("other", guestNode, "cat /data/one; echo read", claim))
		ofLevel(anotherLevel)(&waiting.Spec)
		w.pod(waiting)
		made, err := kube.CoreV1().Pods(w.ns).Get(w.ctx(), waiting.Name, metav1.GetOptions{})
		w.must(err, "read the pod")
		w.eventWithin(toMount, made, "FailedMount", "conflicting SELinux labels")
	})
	w.step("read by a second client", func() {
		w.deletePods("holder")
		contains(t, "what it reads", w.printed("other", "read"), "one")
		w.deletePods("other")
	})
	w.step("deleted", func() {
		w.deleteClaim(claim)
		w.vanished(claim)
	})
}
