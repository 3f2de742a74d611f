//go:build e2e

package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A claim of the class cinder-iscsi becomes one volume that only its password opens, by a Job on
// the node that the config selects; when it goes, so does everything. No other test runs meanwhile,
// whose claim could share the Job.
func TestCinderClaimIsBoundToOneVolumeAndLeavesNothing(t *testing.T) {
	w := newWorld(t, "cinder")
	claim := w.claim(cinderClass, "data")
	pv := w.bound(claim)
	vol := w.onlyVolume(claim)

	w.checkVolume(claim, pv, vol)
	w.checkPV(claim, pv, vol)
	w.checkRun(claim)
	w.checkResult(claim)
	w.checkLogin(pv)

	iqn := pv.Spec.ISCSI.IQN
	contains(t, "tgtd's targets", w.targets(), iqn)
	w.deleteClaim(claim)
	w.vanished(claim)
	if strings.Contains(w.targets(), iqn) {
		t.Errorf("tgtd still exports %s", iqn)
	}
	for _, verb := range []string{"provision", "delete"} {
		job := w.onlyJob(claim, verb)
		equal(t, "Job "+job.Name+" is released", released(job), true)
		equal(t, "Job "+job.Name+" expires", job.Spec.TTLSecondsAfterFinished != nil, true)
		equal(t, "who has written on the Job "+job.Name+", as tracked", len(job.ManagedFields), 0) // internal/fakecluster tracks none
	}
}

// statusAfter is how each workflow leaves a volume that no Nova attaches.
var statusAfter = map[string]string{
	"reserve":     "in-use", // os-reserve, os-initialize_connection, os-attach
	"attachments": "in-use", // an attachment, updated and completed
}

func (w *world) checkVolume(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, vol volume) {
	w.t.Helper()
	equal(w.t, "the volume's claim", vol.Metadata["flex-provisioner.io/claim-uid"], string(claim.UID))
	system, err := kube.CoreV1().Namespaces().Get(w.ctx(), "kube-system", metav1.GetOptions{})
	w.must(err, "read the namespace kube-system")
	equal(w.t, "the volume's cluster", vol.Metadata["flex-provisioner.io/cluster-uid"], string(system.UID))
	equal(w.t, "the volume's size", vol.Size, 1)
	equal(w.t, "the volume's type", vol.Type, "lvm")
	workflow := pv.Annotations["flex-provisioner.io/cinder-attach-api"]
	status, known := statusAfter[workflow]
	equal(w.t, "the workflow on the PV is known: "+workflow, known, true)
	equal(w.t, "the volume's status after the workflow "+workflow, vol.Status, status)
}

func (w *world) checkPV(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, vol volume) {
	w.t.Helper()
	for key, want := range map[string]string{
		"flex-provisioner.io/claim-uid":        string(claim.UID),
		"flex-provisioner.io/cinder-volume-id": vol.ID,
		"pv.kubernetes.io/provisioned-by":      "flex-provisioner.io",
	} {
		equal(w.t, "the PV's annotation "+key, pv.Annotations[key], want)
	}
	revision := pv.Annotations["flex-provisioner.io/config-revision"]
	equal(w.t, "the PV's revision "+revision+" names the config", strings.HasPrefix(revision, "flex-provisioner/cinder-iscsi-"), true)
	equal(w.t, "the PV has our finalizer", slices.Contains(pv.Finalizers, "flex-provisioner.io/storage"), true)
	equal(w.t, "the PV's claim", pv.Spec.ClaimRef.UID, claim.UID)
	equal(w.t, "the PV's claim", pv.Spec.ClaimRef.Namespace+"/"+pv.Spec.ClaimRef.Name, w.ns+"/data")
	equal(w.t, "the PV's class", pv.Spec.StorageClassName, cinderClass)
	equal(w.t, "the PV's policy", pv.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	equal(w.t, "the PV's capacity", pv.Spec.Capacity.Storage().Value(), 1<<30)
	source := pv.Spec.ISCSI
	if source == nil || source.SecretRef == nil {
		w.t.Fatalf("the PV has no iscsi source with a Secret: %+v", pv.Spec.PersistentVolumeSource)
	}
	equal(w.t, "the portal", source.TargetPortal, "10.250.0.1:3260")
	equal(w.t, "CHAP for the session", source.SessionCHAPAuth, true)
	equal(w.t, "the Secret's namespace", source.SecretRef.Namespace, ownNamespace)
	equal(w.t, "the file system", source.FSType, "ext4")
	contains(w.t, "the IQN", source.IQN, vol.ID)
}

// checkRun: one Job, one pod, on the node that the config's node-selector names.
func (w *world) checkRun(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	job := w.onlyJob(claim, "provision")
	equal(w.t, "the Job's name", job.Name, "provision-"+string(claim.UID)+"-1")
	equal(w.t, "the Job's namespace", job.Namespace, ownNamespace)
	w.eventually(toBind, "the Job "+job.Name+" to complete", func(ctx context.Context) error {
		now, err := kube.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c := ended(*now); c == nil || c.Type != batchv1.JobComplete {
			return errors.New("it has not completed")
		}
		return nil
	})
	equal(w.t, "the node of the Job's pod", w.onlyPod(job).Spec.NodeName, "node1")
}

func (w *world) checkResult(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	now := w.look(claim)
	for key, want := range map[string]string{"result": "succeeded", "exit-code": "0", "attempts": "1", "message": ""} {
		equal(w.t, "the claim's annotation "+key, now.Annotations["flex-provisioner.io/"+key], want)
	}
	at, err := time.Parse(time.RFC3339, now.Annotations["flex-provisioner.io/provision-ts"])
	w.must(err, "read the claim's annotation provision-ts")
	if since := time.Since(at); since < 0 || since > toBind+time.Minute {
		w.t.Errorf("provision-ts is %s ago", since)
	}
	w.event(now, "ProvisioningSucceeded", "pvc-"+string(claim.UID))
}

func (w *world) checkLogin(pv *corev1.PersistentVolume) {
	w.t.Helper()
	user, password := w.chap(pv)
	said := w.checkStorage(pv.Spec.ISCSI, user, password)
	for _, fact := range []string{"a random pattern is written", "a new session reads the same pattern", "a wrong password is refused", "no password is refused"} {
		contains(w.t, "what the initiator saw", said, fact)
	}
}
