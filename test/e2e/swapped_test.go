//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// swapsLinks is what the attacker's pod runs in its volume. As soon as a delete has begun with the
// directory d, it replaces that by a link to the directory of all volumes, where the delete would
// find the victim's by a name that it has read in d. Of 60,000 files 200 show that it has begun.
const swapsLinks = `cd /data
mkdir -p "d/$VICTIM/deeper"
seq 60000 | sed 's,^,d/f,' | xargs touch
some=$(seq 200)
begun() { for i in $some; do [ -e "d/f$i" ] || return 0; done; return 1; }
echo ready
until begun; do :; done
mv d .d || { echo swapped too late; exit 0; }
ln -s .. d
if [ -d ".d/$VICTIM" ]; then echo swapped in time; else echo swapped too late; fi
while sleep 0.1; do [ -L d ] || ln -s .. d 2>/dev/null || true; done
`

// victim makes a claim on node1 whose volume has a file, and returns its PV's name and the file as
// the node has it.
func (w *world) victim() (pv, file string) {
	w.t.Helper()
	claim := w.claim(directoryClass, "victim")
	w.pod(shell("victim", "node1", "echo precious >/data/file", claim))
	w.output("victim")
	return w.bound(claim).Name, filepath.Join(directory("1", claim), "file")
}

// swapsWhileDeleted deletes a claim while its pod still writes, as any user may who may change the
// claim: without the finalizer pvc-protection, Kubernetes does not wait for the pod. It reports
// whether the pod's swap was in time.
func (w *world) swapsWhileDeleted(claim *corev1.PersistentVolumeClaim, victim string) bool {
	w.t.Helper()
	pod := shell(claim.Name, "node1", swapsLinks, claim)
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "VICTIM", Value: victim}}
	w.pod(pod)
	w.printed(claim.Name, "ready")
	w.bound(claim)
	w.deleteClaim(claim)
	_, err := kube.CoreV1().PersistentVolumeClaims(w.ns).Patch(w.ctx(), claim.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.gone(err, "the protection of the claim "+claim.Name)
	return strings.Contains(w.printed(claim.Name, "swapped"), "in time")
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

// A pod that still writes to its volume while that is deleted leads the delete nowhere else, and
// its volume is deleted as well.
func TestDeleteReachesNoOtherVolumeByLinksThatAPodSwaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "swapped")
	victim, file := w.victim()
	inTime := false
	for i := 0; i < 5 && !inTime; i++ {
		claim := w.claim(directoryClass, fmt.Sprintf("attacker-%d", i))
		inTime = w.swapsWhileDeleted(claim, victim)
		w.deletePods(claim.Name)
		w.vanished(claim)
		equal(t, "nodes with the attacker's directory", w.holders(claim), "[]")
	}
	if !inTime {
		t.Error("no swap was in time")
	}
	text, err := os.ReadFile(file)
	w.must(err, "read the victim's file")
	equal(t, "the victim's file", string(text), "precious\n")
}

// A directory with the sticky bit, such as a TMPDIR, lets only its owner delete what is in it, or
// who has CAP_FOWNER.
func TestVolumeWithAStickyDirectoryOfAnotherUserIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sticky")
	claim := w.claim(directoryClass, "data")
	pod := shell("writer", "node1", "mkdir -m 1777 /data/tmp; touch /data/tmp/session; mkdir -m 0 /data/closed", claim)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1000))}
	w.pod(pod)
	w.output("writer")
	w.bound(claim)
	w.deletePods("writer")
	w.deleteClaim(claim)
	w.vanished(claim)
	equal(t, "nodes with the directory of a deleted claim", w.holders(claim), "[]")
}
