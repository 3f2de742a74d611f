//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forges is a script that writes the PV with annotations of the test's, as whoever has the token of
// the script's pod.
const forges = deletes + `kubectl patch --local -f /etc/flex/pv.json --type=merge -o json -p "$FLEX_FORGED" | kubectl create -f - || kubectl get pv "$FLEX_PV_NAME"` + "\n"

// The token of a pod of a class in bash is stolen. The thief writes the PV of the pod's claim: it
// names the config revision of a Cinder class, so that the claim's deletion would have that class's
// login, a disk that this project has not made, and the attachment of another claim's volume. The
// claim is bound, and nothing more comes of it: the disk is there when the claim has been deleted,
// and the other claim's volume is exported.
func TestForgedPVReachesNoVolumeOfAnotherClass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "forged")
	victim := w.claim(w.cinderService(nil), "victim")
	theirs := w.bound(victim)
	exported := w.onlyVolume(victim)
	disk := w.disk("disk-of-a-server-" + w.ns)
	equal(t, "the project of the disk", disk.Project, exported.Project)

	revision := theirs.Annotations["flex-provisioner.io/config-revision"]
	claim := w.claim(w.forgingService(map[string]string{
		"flex-provisioner.io/config-revision":      revision,
		"flex-provisioner.io/cinder-volume-id":     disk.ID,
		"flex-provisioner.io/cinder-attach-api":    "attachments",
		"flex-provisioner.io/cinder-attachment-id": theirs.Annotations["flex-provisioner.io/cinder-attachment-id"],
		"flex-provisioner.io/cinder-connector":     theirs.Annotations["flex-provisioner.io/cinder-connector"],
	}), "data")
	w.whenDone(func() {
		w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), "pvc-"+string(claim.UID), metav1.DeleteOptions{}), "the forged PV")
	})
	w.eventually(toBind, "the claim to be bound", func(ctx context.Context) error { return isBound(ctx, claim) })
	equal(t, "the revision on the forged PV", w.pv(claim).Annotations["flex-provisioner.io/config-revision"], revision)
	w.event(claim, "VolumeInDoubt", revision, "kubectl annotate --overwrite pv pvc-"+string(claim.UID), "stolen")

	w.deleteClaim(claim)
	w.claimGone(claim)
	w.eventually(toBind, "the forged PV to be released", func(ctx context.Context) error { return pvPhase(ctx, claim, corev1.VolumeReleased) })
	w.always(20*time.Second, "no delete may be launched", func(ctx context.Context) error { return noDelete(ctx, claim) })
	equal(t, "the disk is in Cinder", w.hasVolume(disk.ID), true)
	equal(t, "the status of the other claim's volume", w.onlyVolume(victim).Status, exported.Status)
	contains(t, "tgtd's targets", w.targets(), theirs.Spec.ISCSI.IQN)

	// By the remedies of the events the PV goes, and the record is given up.
	w.must(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), "pvc-"+string(claim.UID), metav1.DeleteOptions{}), "delete the forged PV")
	w.giveUp(claim)
	w.vanished(claim)
	for _, job := range w.jobs(claim, "") {
		equal(t, "the image of the Job "+job.Name, job.Spec.Template.Spec.Containers[0].Image, bashImage)
	}
	equal(t, "the disk is in Cinder", w.hasVolume(disk.ID), true)
}

// forgingService makes a class whose image is forges, and returns its name.
func (w *world) forgingService(annotations map[string]string) string {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"spec":     map[string]any{"nfs": map[string]string{"server": "10.250.0.9", "path": "/exports/forged"}},
	})
	w.must(err, "encode the PV")
	class := w.ns + "-thief"
	w.class(class)
	w.config(ownNamespace, class, scripted(forges, map[string]string{
		"write-pv": "container", "service-account-name": "cinder-provisioner", "forged": string(patch),
	}))
	return class
}

// disk makes a volume in Cinder as its administrator, for nothing of Kubernetes.
func (w *world) disk(name string) volume {
	w.t.Helper()
	w.must(tellCinder(w.ctx(), "/volumes", map[string]any{"volume": map[string]any{"name": name, "size": 1, "volume_type": "lvm"}}), "make the disk of a server")
	var made volume
	w.eventually(toBind, "the disk to be available", func(ctx context.Context) error {
		every, err := cinderVolumes(ctx)
		for _, v := range every {
			if v.Name == name && v.Status == "available" {
				made = v
				return err
			}
		}
		return errors.Join(err, errors.New("it is not"))
	})
	w.remove(func() {
		err := tellCinder(w.ctx(), "/volumes/"+made.ID+"/action", map[string]any{"os-force_delete": map[string]any{}})
		if err != nil && !strings.Contains(err.Error(), "404") {
			w.t.Errorf("delete the disk: %v", err)
		}
	})
	return made
}

func pvPhase(ctx context.Context, claim *corev1.PersistentVolumeClaim, want corev1.PersistentVolumePhase) error {
	pv, err := kube.CoreV1().PersistentVolumes().Get(ctx, "pvc-"+string(claim.UID), metav1.GetOptions{})
	if err == nil && pv.Status.Phase != want {
		err = fmt.Errorf("its phase is %s", pv.Status.Phase)
	}
	return err
}
