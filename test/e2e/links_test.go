//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The links of a volume lead its delete nowhere else, and the volume is deleted as well.
func TestDeleteReachesNoOtherVolumeByLinksOfAPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "links")
	other := w.claim(directoryClass, "victim")
	w.pod(shell("victim", "node1", "echo precious >/data/file", other))
	w.output("victim")
	victim, file := w.bound(other).Name, filepath.Join(directory("1", other), "file")
	claim := w.claim(directoryClass, "data")
	link := "mkdir /data/d; cd /data/d; ln -s ../../" + victim + " relative; ln -s " +
		filepath.Join(volumesFolder, victim) + " absolute; ln -s ../.. above"
	w.pod(shell("writer", "node1", link, claim))
	w.output("writer")
	w.bound(claim)
	w.deletePods("writer")
	w.deleteClaim(claim)
	w.vanished(claim)
	equal(t, "nodes with the directory of a deleted claim", w.holders(claim), "[]")
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
