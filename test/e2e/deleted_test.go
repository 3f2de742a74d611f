//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The first attempts make a volume and fail after that. The claim is deleted during the backoff,
// and the delete verb removes the volume.
func TestClaimDeletedDuringBackoffLeavesNoVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "backoff")
	class := w.cinderService(nil)
	w.forbidPVs(class)
	claim := w.claim(class, "data")
	const attempts = 4 // 8 s of pause follow
	w.failed(claim, attempts, 2*time.Minute)
	w.deleteClaim(claim)
	equal(t, "the exit code", w.exitCodeOfJob(claim, attempts), int32(75))
	w.onlyVolume(claim)
	secrets, err := kube.CoreV1().Secrets(ownNamespace).List(w.ctx(), labelled("flex-provisioner.io/claim-uid="+string(claim.UID)))
	w.must(err, "list Secrets")
	equal(t, "CHAP Secrets before the undo", len(secrets.Items), 1)

	w.vanished(claim)
	equal(t, "attempts: the claim went in a backoff", len(w.jobs(claim, "provision")), attempts)
	undo := w.onlyJob(claim, "delete")
	equal(t, "FLEX_UNDO of the delete Job", variable(undo, "FLEX_UNDO"), "true")
	w.event(&undo, "Undoing", w.ns+"/data")
}

// claimGone waits until a deleted claim no longer exists, whatever is left of it elsewhere.
func (w *world) claimGone(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	w.eventually(toBind, "the claim "+claim.Name+" to go", func(ctx context.Context) error {
		if _, err := lookClaim(ctx, claim); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
}

func (w *world) exitCodeOfJob(claim *corev1.PersistentVolumeClaim, number int) int32 {
	w.t.Helper()
	pod := w.onlyPod(w.jobs(claim, "provision")[number-1])
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end != nil {
		return end.ExitCode
	}
	return -1
}

// forbidPVs refuses every PV of a class, by an answer that an image can only take for a transient
// error.
func (w *world) forbidPVs(class string) {
	w.t.Helper()
	w.policy(admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: creating("persistentvolumes")},
		Validations: []admissionregistrationv1.Validation{{
			Expression: fmt.Sprintf("object.spec.storageClassName != %q", class),
			Reason:     new(metav1.StatusReasonRequestEntityTooLarge),
		}},
	})
	w.eventually(toBind, "the API server to keep the policy", func(ctx context.Context) error {
		_, err := kube.CoreV1().PersistentVolumes().Create(ctx, somePV(w.ns, class), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("a PV of the class may be written")
		}
		return nil
	})
}

func somePV(name, class string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:       class,
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/"}},
		},
	}
}

// A PV that is deleted while it is bound is still in use: its volume stays until the claim is
// deleted.
func TestPVDeletedWhileBoundKeepsItsVolumeUntilItsClaimIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "pvgone")
	claim := w.claim(cinderClass, "data")
	pv := w.bound(claim)
	vol := w.onlyVolume(claim)
	w.must(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "delete the PV")
	w.always(8*time.Second, "the volume must stay", func(ctx context.Context) error { return terminatingButWhole(ctx, claim, vol) })
	equal(t, "the claim's phase", w.look(claim).Status.Phase, corev1.ClaimBound)
	user, password := w.chap(pv)
	w.checkStorage(pv.Spec.ISCSI, user, password)

	w.deleteClaim(claim)
	w.vanished(claim)
}

// terminatingButWhole checks that the PV is terminating and that its volume still exists.
func terminatingButWhole(ctx context.Context, claim *corev1.PersistentVolumeClaim, vol volume) error {
	pv, err := kube.CoreV1().PersistentVolumes().Get(ctx, "pvc-"+string(claim.UID), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pv.DeletionTimestamp == nil || !slices.Contains(pv.Finalizers, "flex-provisioner.io/storage") {
		return fmt.Errorf("the PV's deletion is of %v and its finalizers are %v", pv.DeletionTimestamp, pv.Finalizers)
	}
	jobs, err := jobsOf(ctx, string(claim.UID), "delete")
	if err != nil || len(jobs) > 0 {
		return errors.Join(err, fmt.Errorf("there are the Jobs %v", names(jobs)))
	}
	volumes, err := volumesOf(ctx, string(claim.UID))
	if err != nil || len(volumes) != 1 || volumes[0].ID != vol.ID || volumes[0].Status != vol.Status {
		return errors.Join(err, fmt.Errorf("Cinder has %v", volumes))
	}
	return nil
}

// When a claim is deleted while its Job runs, all that the Job makes after that is removed.
func TestClaimDeletedWhileItsJobRunsLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "running")
	gate := w.newGate()
	claim := w.claim(w.cinderService(map[string]string{"pod-template": gate.template()}), "data")
	w.reached(gate)
	w.deleteClaim(claim)
	w.claimGone(claim)
	gate.open()
	w.vanished(claim)
	// The Job made its volume: there was something to undo.
	job := w.onlyJob(claim, "provision")
	equal(t, "the Job has completed", ended(job) != nil && job.Status.Succeeded == 1, true)
	equal(t, "delete Jobs", len(w.jobs(claim, "delete")), 1)
}

// A volume is deleted under the revision that made it, when its config and its class no longer
// exist.
func TestVolumeIsDeletedWhenConfigAndClassNoLongerExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "revision")
	class := w.class(w.ns, parameter("type", "lvm"))
	cm := w.config(ownNamespace, w.ns, cinderConfig(nil))
	claim := w.claim(w.ns, "data")
	w.bound(claim)
	w.onlyVolume(claim)
	w.deleteConfig(cm)
	w.deleteClass(class.Name)
	w.deleteClaim(claim)
	w.vanished(claim)
}
