//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	flexClass  = "cinder-flexvolume"
	flexDriver = "flex-provisioner.io/iscsi"
	// atInstall puts the driver where the kubelet finds it, as docs/cinder.md says.
	atInstall = `install -D -m 755 "$1" "$2/.iscsi" && mv "$2/.iscsi" "$2/iscsi"`
	flexDir   = "/var/lib/kubelet/volumeplugins/flex-provisioner.io~iscsi"
)

// installFlexDriver installs the driver of the example on all nodes, once for all tests.
var installFlexDriver = sync.OnceValue(func() error {
	script, err := filepath.Abs("../../deploy/examples/flexvolume-iscsi.sh")
	for _, node := range nodes {
		if err == nil {
			_, err = onNode(context.Background(), node, "bash", "-c", atInstall, "install", script, flexDir)
		}
	}
	return err
})

// A volume of the example's class is mounted by a driver in bash, with what the kubelet gives it:
// on one node after the other, and by two pods on a node. The driver logs out after the last pod.
func TestFlexVolumeIsMountedByADriverInBash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "flexvolume")
	w.must(installFlexDriver(), "install the driver")
	w.apply(flexClass)
	claim := w.claim(flexClass, "data")
	source := w.flexSource(w.bound(claim))
	iqn := source.Options["target_iqn"]

	w.pod(writable(shell("holder", "node1", "echo from node1 >/data/file; grep ' /data ' /proc/mounts; until [ -e /data/end ]; do sleep 0.1; done; cat /data/end", claim)))
	w.eventually(toMount, "node1 to be logged in", func(ctx context.Context) error { return loggedIn(ctx, "1", iqn) })
	equal(t, "the file in another pod on the node", w.read(claim, "node1", "until [ -e /data/file ]; do sleep 0.1; done; cat /data/file", readOnly), "from node1\n")
	w.must(loggedIn(w.ctx(), "1", iqn), "the session of the other pod")
	w.read(claim, "node1", "echo the end >/data/.end && mv /data/.end /data/end")
	said := w.output("holder")
	contains(t, "the mount", said, " ext4 ")
	contains(t, "what the first pod reads", said, "the end\n")
	w.deletePods("holder")
	w.loggedOut("1", iqn)

	equal(t, "the file on the other node", w.read(claim, "node2", "cat /data/file"), "from node1\n")
	w.loggedOut("2", iqn)
	w.deleteClaim(claim)
	w.vanished(claim)
	if strings.Contains(w.targets(), iqn) {
		t.Errorf("tgtd still exports %s", iqn)
	}
}

// flexSource returns the source of a PV, whose Secret is for the driver only and whose options hold
// no password.
func (w *world) flexSource(pv *corev1.PersistentVolume) *corev1.FlexPersistentVolumeSource {
	w.t.Helper()
	source := pv.Spec.FlexVolume
	if source == nil || source.Driver != flexDriver || source.SecretRef == nil {
		w.t.Fatalf("the PV's source is %+v", pv.Spec.PersistentVolumeSource)
	}
	secret, err := kube.CoreV1().Secrets(source.SecretRef.Namespace).Get(w.ctx(), source.SecretRef.Name, metav1.GetOptions{})
	w.must(err, "read the Secret that the PV names")
	equal(w.t, "the type of the Secret", string(secret.Type), flexDriver)
	for name, value := range source.Options {
		if strings.Contains(value, string(secret.Data[flexPassword])) {
			w.t.Errorf("the option %s holds the password", name)
		}
	}
	return source
}

// A wrong password is refused by the target, and the kubelet's event has the reason. No session is
// left, and no password is in the kubelet's log.
func TestFlexVolumeWithAWrongPasswordIsNotMounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "flexvolume")
	w.must(installFlexDriver(), "install the driver")
	w.class(w.ns, parameter("type", "lvm"), parameter("connection", "iscsi"), parameter("flex-driver", flexDriver))
	w.config(ownNamespace, w.ns, cinderConfig(nil))
	claim := w.claim(w.ns, "data")
	source := w.flexSource(w.bound(claim))
	secrets := kube.CoreV1().Secrets(source.SecretRef.Namespace)
	secret, err := secrets.Get(w.ctx(), source.SecretRef.Name, metav1.GetOptions{})
	w.must(err, "read the Secret")
	passwords := []string{string(secret.Data[flexPassword]), "wrong-password-of-a-FlexVolume"}
	secret.Data[flexPassword] = []byte(passwords[1])
	_, err = secrets.Update(w.ctx(), secret, metav1.UpdateOptions{})
	w.must(err, "write a wrong password")

	w.deletePods(w.lockedOut(claim).Name)
	w.loggedOut("1", source.Options["target_iqn"])

	log, err := os.ReadFile(filepath.Join(labState(), "kube", "log", "kubelet1.log"))
	w.must(err, "read the kubelet's log")
	contains(t, "the kubelet's log", string(log), "lets nobody in")
	for _, password := range passwords {
		if len(leaks([]place{{text: string(log)}}, password)) > 0 {
			t.Error("the kubelet's log holds a password")
		}
	}
}

// loggedIn returns an error unless a node has a session with a target.
func loggedIn(ctx context.Context, node, iqn string) error {
	_, err := onNode(ctx, node, "grep", "-rqs", iqn, "/sys/class/iscsi_host")
	if err != nil {
		return fmt.Errorf("node%s has no session with %s: %w", node, iqn, err)
	}
	return nil
}

// sessionTraces prints what a node has of a session: what the kernel shows, its disk, and the
// driver's records.
const sessionTraces = `{ grep -rs "$1" /sys/class/iscsi_host; ls /dev/disk/by-path; ls "/run/flexvolume-iscsi/$1"; } | grep "$1\|pvc-"`

// loggedOut waits until a node has no session with a target, no disk of it and no record of it.
func (w *world) loggedOut(node, iqn string) {
	w.t.Helper()
	w.eventually(toMount, "node"+node+" to have logged out", func(ctx context.Context) error {
		out, err := onNode(ctx, node, "bash", "-c", sessionTraces, "left", iqn)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
			return nil // grep found nothing
		}
		return errors.Join(err, fmt.Errorf("there is %s", out))
	})
}
