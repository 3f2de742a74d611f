//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The pod of a delete Job waits for a node, and the PV is set to Retain meanwhile. The Job is taken
// back: when there is a node again, nothing deletes the volume.
func TestDeleteThatHasNotStartedIsTakenBackWhenItsPVIsRetained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "rescued")
	w.directoriesOfNodes()
	label := "e2e.example.com/" + w.ns
	w.labelNode("node1", label, `"true"`)
	class := w.directoryService(makesDirectories+writesPV(""), map[string]string{"node-selector": label + "=true"})
	claim := w.claim(class, "data")
	pv := w.bound(claim)
	w.whenDone(func() { w.forget(claim) })
	equal(t, "nodes with the directory", w.holders(claim), "[node1]")
	w.labelNode("node1", label, "null")
	w.deleteClaim(claim)
	w.claimGone(claim)
	w.eventually(toBind, "the pod of a delete Job to wait for a node", func(ctx context.Context) error { return waitsForNode(ctx, claim) })

	w.patchPV(pv.Name, `{"spec": {"persistentVolumeReclaimPolicy": "Retain"}}`)
	w.eventually(30*time.Second, "the delete Job to be taken back", func(ctx context.Context) error { return noDelete(ctx, claim) })
	w.labelNode("node1", label, `"true"`)
	w.always(10*time.Second, "no delete may run", func(ctx context.Context) error { return noDelete(ctx, claim) })
	equal(t, "nodes with the retained directory", w.holders(claim), "[node1]")
}

// labelNode sets a label of a node to a JSON value; null removes it.
func (w *world) labelNode(node, label, value string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, label, value)
	_, err := kube.CoreV1().Nodes().Patch(w.ctx(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err, "label "+node)
	if value != "null" {
		w.remove(func() { w.labelNode(node, label, "null") })
	}
}

func (w *world) patchPV(name, patch string) {
	w.t.Helper()
	_, err := kube.CoreV1().PersistentVolumes().Patch(w.ctx(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err, "change the PV "+name)
}

// waitsForNode reports an error unless one pod deletes the claim's volume, and no node takes it.
func waitsForNode(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	jobs, err := jobsOf(ctx, string(claim.UID), "delete")
	if err != nil || len(jobs) != 1 {
		return errors.Join(err, fmt.Errorf("there are the Jobs %v", names(jobs)))
	}
	pods, err := podsOf(ctx, jobs[0])
	if err != nil || len(pods) != 1 {
		return errors.Join(err, fmt.Errorf("there are %d pods", len(pods)))
	}
	for _, c := range pods[0].Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return nil
		}
	}
	return fmt.Errorf("its conditions are %v", pods[0].Status.Conditions)
}

// noDelete reports an error unless the claim has no delete Job, or only one that is being deleted
// and has no pod.
func noDelete(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	jobs, err := jobsOf(ctx, string(claim.UID), "delete")
	for _, job := range jobs {
		pods, listed := podsOf(ctx, job)
		err = errors.Join(err, listed)
		if job.DeletionTimestamp == nil || len(pods) > 0 {
			err = errors.Join(err, fmt.Errorf("the Job %s has %d pods, and was deleted at %v", job.Name, len(pods), job.DeletionTimestamp))
		}
	}
	return err
}

// forget removes what the dispatcher keeps of a claim on purpose: its directory, its PV, and its
// records.
func (w *world) forget(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	for _, node := range nodes {
		_, err := onNode(w.ctx(), node, "rm", "-rf", volumesFolder+"/pvc-"+string(claim.UID))
		w.must(err, "remove the directory")
	}
	w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), "pvc-"+string(claim.UID), metav1.DeleteOptions{}), "the PV")
	w.giveUp(claim)
}

// giveUp gives up the claim's records, as an administrator does.
func (w *world) giveUp(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	for _, job := range w.jobs(claim, "") {
		if !released(job) {
			patch := fmt.Sprintf(`{"metadata": {"annotations": {"flex-provisioner.io/forget": %q}}}`, claim.UID)
			_, err := kube.BatchV1().Jobs(job.Namespace).Patch(w.ctx(), job.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			w.gone(err, "the record "+job.Name)
		}
	}
}

// The policy is Retain and the run goes on after it has written the PV. No dispatcher runs from
// then on; the claim is deleted, an administrator deletes the PV object to keep the volume, and the
// run ends. The next dispatcher does not undo the run.
func TestRetainedVolumeIsKeptWhenItsPVWasDeletedDuringAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "outage")
	gate := w.newGate()
	p := w.directoriesOfNodes()
	leader := w.leads("")
	hold := fmt.Sprintf("until wget -q -O /dev/null %s; do sleep 1; done\n", gate.url)
	class := w.directoryService(makesDirectories+writesPV("")+hold, onNode1, retain)
	claim := w.claim(class, "data")
	w.reached(gate)
	w.eventually(toBind, "the claim to be bound while its run goes on", func(ctx context.Context) error { return isBound(ctx, claim) })
	_ = w.stop(p, syscall.SIGKILL) // Wait's error names the signal
	w.whenDone(func() { w.forget(claim) })
	holders := w.holders(claim)

	w.deleteClaim(claim)
	w.claimGone(claim)
	pv := w.pv(claim).Name
	w.must(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv, metav1.DeleteOptions{}), "delete the PV")
	gate.open()
	w.jobEnded(claim, "provision")
	w.directoriesOfNodes()
	w.leads(leader)
	w.eventually(toBind, "the run to be on record, and its PV to go", func(ctx context.Context) error { return recordedWithoutPV(ctx, claim) })
	w.always(15*time.Second, "no delete may be launched", func(ctx context.Context) error { return noDelete(ctx, claim) })
	equal(t, "nodes with the retained directory", w.holders(claim), holders)
	equal(t, "there is a directory", holders != "[]", true)
}

// isBound returns an error unless a claim is bound.
func isBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	now, err := lookClaim(ctx, claim)
	if err == nil && now.Status.Phase != corev1.ClaimBound {
		err = fmt.Errorf("its phase is %s", now.Status.Phase)
	}
	return err
}

func recordedWithoutPV(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	jobs, err := jobsOf(ctx, string(claim.UID), "provision")
	if err == nil && recordOf(jobs[0], string(claim.UID)).Outcome == nil {
		err = errors.New("no outcome is recorded")
	}
	_, got := kube.CoreV1().PersistentVolumes().Get(ctx, "pvc-"+string(claim.UID), metav1.GetOptions{})
	if got == nil {
		err = errors.Join(err, errors.New("the PV is there"))
	}
	return errors.Join(err, known(got))
}

// onNode1 sends every run to one node: what a run has made in a directory there, no other node can
// delete.
var onNode1 = map[string]string{"node-selector": "kubernetes.io/hostname=node1"}

// An image writes its PV without the annotation of the claim's UID, so the PV proves nothing, and
// our finalizer is on it. When the claim is deleted, an event of the PV says what to do, and that
// works: the PV goes, and the record is given up. The volume stays.
func TestUnprovenPVGoesByTheRemedyOfItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unproven")
	w.directoriesOfNodes()
	class := w.directoryService(makesDirectories+writesPV(`,"metadata":{"annotations":{"flex-provisioner.io/claim-uid":null}}`), onNode1)
	claim := w.claim(class, "data")
	w.eventually(toBind, "the claim to be bound", func(ctx context.Context) error { return isBound(ctx, claim) })
	w.failed(claim, 1, toBind)
	w.whenDone(func() { w.forget(claim) })
	pv := w.pv(claim)
	contains(t, "the PV's finalizers", fmt.Sprint(pv.Finalizers), "flex-provisioner.io/storage")
	w.deleteClaim(claim)
	w.claimGone(claim)
	w.event(pv, "VolumeInDoubt", "flex-provisioner.io/claim-uid", "delete the PersistentVolume")
	holders := w.holders(claim)
	w.must(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "delete the PV")
	w.giveUp(claim)
	w.vanished(claim)
	equal(t, "nodes with the directory", w.holders(claim), holders)
}

// An administrator takes the annotation of the claim's UID off a PV. Its volume is not deleted any
// more, and the PV itself can be deleted: an event says that the volume stays.
func TestPVWhoseMarkWasRemovedCanBeDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unmarked")
	w.directoriesOfNodes()
	class := w.directoryService(makesDirectories+writesPV(""), onNode1)
	claim := w.claim(class, "data")
	pv := w.bound(claim)
	w.whenDone(func() { w.forget(claim) })
	holders := w.holders(claim)
	w.patchPV(pv.Name, `{"metadata": {"annotations": {"flex-provisioner.io/claim-uid": null}}}`)
	w.deleteClaim(claim)
	w.claimGone(claim)
	w.must(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "delete the PV")
	w.vanished(claim)
	equal(t, "nodes with the directory", w.holders(claim), holders)
	w.event(pv, "LeftBehind", "flex-provisioner.io/claim-uid")
}
