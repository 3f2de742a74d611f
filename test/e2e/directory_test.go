//go:build e2e

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeNamespace is the namespace of configs that make directories on a node.
const nodeNamespace = "flex-provisioner-node"

// The bash provisioner makes a directory on the node that the scheduler selected, and on no other;
// two pods one after the other see the same file in it.
func TestBashProvisionerMakesADirectoryOnTheSelectedNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "directory")
	for _, node := range nodes {
		name := "node" + node
		claim := w.claim(directoryClass, "on-"+name)
		equal(t, "the claim waits for its first consumer: nodes with its directory", w.holders(claim), "[]")
		w.pod(shell("writer-"+name, name, "echo from the first pod >/data/file", claim))
		w.output("writer-" + name)
		w.pod(shell("reader-"+name, name, "cat /data/file", claim))
		equal(t, "what the second pod read", w.output("reader-"+name), "from the first pod\n")
		w.bound(claim)
		equal(t, "nodes with the directory", w.holders(claim), "["+name+"]")
		equal(t, "the node of the Job's pod", w.onlyPod(w.onlyJob(claim, "provision")).Spec.NodeName, name)

		w.deletePods("writer-"+name, "reader-"+name)
		w.deleteClaim(claim)
		w.vanished(claim)
		equal(t, "nodes with the directory of a deleted claim", w.holders(claim), "[]")
	}
}

func (w *world) deletePods(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.gone(kube.CoreV1().Pods(w.ns).Delete(w.ctx(), name, metav1.DeleteOptions{}), "pod "+name)
	}
}

// A claim that no directory can satisfy is refused with the image's message, once.
func TestBashProvisionerRefusesABlockClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "block")
	claim := w.claim(directoryClass, "raw", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	})
	pod := shell("consumer", "", "true", claim)
	asDevice(&pod.Spec)
	w.pod(pod)

	w.failed(claim, 1, toBind)
	now := w.look(claim)
	equal(t, "the exit code", now.Annotations["flex-provisioner.io/exit-code"], "65")
	words := "a directory cannot be a raw block device: request volumeMode Filesystem"
	equal(t, "the message", now.Annotations["flex-provisioner.io/message"], words)
	w.event(now, "ProvisioningFailed", words, "BadRequest", "exit code 65", "Remedy: delete the claim, and create it anew")
	equal(t, "the Job is tried again later only", len(w.jobs(claim, "provision")), 1)
}

// A config alone cannot mount a node's directory: the dispatcher's flag --allow must permit it.
func TestConfigThatMountsAnotherHostPathNeverRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "hostpath")
	w.class(w.ns, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	cm := w.config(nodeNamespace, w.ns, map[string]string{
		"image":                bashImage,
		"verbs":                "provision,delete",
		"service-account-name": "directory-provisioner",
		"pod-template": `
spec:
  volumes:
    - name: host
      hostPath: {path: /var/lib/flex-volumes-of-others}
`,
	})
	claim := w.claim(w.ns, "data")
	w.event(claim, "InvalidConfig", "hostPath", "--allow="+nodeNamespace)
	w.event(cm, "InvalidConfig", "hostPath", "--allow="+nodeNamespace)
	w.noJob(claim, 5*time.Second)
}
