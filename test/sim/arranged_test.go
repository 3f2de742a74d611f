package sim_test

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// arranged are acts that seldom find what they need, so they make it first.
var arranged = []act{
	{"an administrator takes the claimRef off a PV", (*world).freePV},
	{"an administrator hands a PV on", (*world).handOn},
	{"an administrator makes a backup, and a claim and its PV are lost", (*world).lose},
	{"a user deletes a claim of a batch whose image cannot be pulled", (*world).leaveBatch},
	{"a claim is deleted, and the node of its volume removed", (*world).loseNode},
}

// begun is of how many worlds one has served its first claims when people and faults begin. In the
// others they begin before.
const begun = 2

// serveFirst lets the first claims be served.
func (w *world) serveFirst() {
	for range 20 {
		w.doAll()
		w.pass(time.Second)
	}
}

// releasedPV returns a PV whose claim does not exist any more, and that is kept, or nil. If there
// is none, an administrator retains one that is bound, and its user deletes the claim.
func (w *world) releasedPV() *corev1.PersistentVolume {
	if released := pvsIn(w, corev1.VolumeReleased); len(released) > 0 {
		return pickOne(w, released)
	}
	bound := pvsIn(w, corev1.VolumeBound)
	if len(bound) == 0 {
		return nil
	}
	pv := pickOne(w, bound)
	w.abandon(pv)
	w.move("PV controller")
	pv = fakecluster.Get[*corev1.PersistentVolume](w, "", pv.Name)
	if pv.Status.Phase != corev1.VolumeReleased {
		return nil
	}
	return pv
}

// pvsIn returns the PVs of a phase that are not terminating.
func pvsIn(w *world, phase corev1.PersistentVolumePhase) []*corev1.PersistentVolume {
	return slices.DeleteFunc(fakecluster.List[*corev1.PersistentVolume](w), func(pv *corev1.PersistentVolume) bool {
		return pv.Status.Phase != phase || pv.DeletionTimestamp != nil
	})
}

// abandon lets an administrator retain a PV, and then the user delete its claim.
func (w *world) abandon(pv *corev1.PersistentVolume) {
	fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	w.deleteClaimOf(pv)
}

func (w *world) deleteClaimOf(pv *corev1.PersistentVolume) {
	if claim := w.Claim(pv.Spec.ClaimRef.Name); claim != nil {
		fakecluster.Delete(w, fakecluster.User, claim)
	}
}

// move lets all moves of a name happen.
func (w *world) move(name string) {
	for _, move := range w.Moves() {
		if move.Name == name {
			move.Do()
		}
	}
}

// lose makes a backup, and then lets a claim and its retained PV be deleted.
func (w *world) lose() string {
	bound := pvsIn(w, corev1.VolumeBound)
	if len(bound) == 0 {
		return ""
	}
	pv := pickOne(w, bound)
	fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	w.makeBackup()
	w.abandon(pv)
	fakecluster.Delete(w, fakecluster.Admin, pv)
	return pv.Name
}

// createBatch creates claims of a class whose Jobs may serve several.
func (w *world) createBatch() {
	of := pickOne(w, slices.DeleteFunc(slices.Clone(classes), func(c class) bool { return !slices.Contains(c.keys, "batch-size") }))
	for range 4 {
		w.claims++
		w.createOf(fmt.Sprintf("data-%d", w.claims), of.name)
	}
}

// leaving is of how many times one a batch is left: it costs more than other acts.
const leaving = 3

// leaveBatch deletes a claim of a Job that has others, and that cannot start, since its image
// cannot be pulled. The first of the claims gets a Job of its own, which has started before.
func (w *world) leaveBatch() string {
	if w.rand.IntN(leaving) > 0 {
		return ""
	}
	w.setWaits("")
	for _, p := range w.Processes() {
		catchUp(p) // a claim of which the PV is not seen would be launched again and again meanwhile
	}
	w.createBatch()
	w.doAll()
	w.setWaits("ErrImagePull")
	w.pass(time.Second)
	w.doAll()
	unstarted := slices.DeleteFunc(fakecluster.List[*corev1.Pod](w), func(pod *corev1.Pod) bool {
		return len(w.membersOf(pod)) < 2 || pod.Status.Phase != corev1.PodPending || isGated(pod) || pod.DeletionTimestamp != nil
	})
	if len(unstarted) == 0 {
		return ""
	}
	leaves := pickOne(w, w.membersOf(pickOne(w, unstarted)))
	fakecluster.Delete(w, fakecluster.User, leaves)
	return leaves.Name
}

// membersOf returns the claims that a pod's Job is for, but those that are terminating.
func (w *world) membersOf(pod *corev1.Pod) []*corev1.PersistentVolumeClaim {
	job := fakecluster.Get[*batchv1.Job](w, pod.Namespace, pod.Labels[batchv1.JobNameLabel])
	if job == nil {
		return nil
	}
	uids := jobs.UIDs(job)
	return slices.DeleteFunc(fakecluster.List[*corev1.PersistentVolumeClaim](w), func(claim *corev1.PersistentVolumeClaim) bool {
		return !slices.Contains(uids, string(claim.UID)) || claim.DeletionTimestamp != nil
	})
}

// loseNode deletes the claim of a volume that is on one node, and removes that node for good.
func (w *world) loseNode() string {
	local := slices.DeleteFunc(pvsIn(w, corev1.VolumeBound), func(pv *corev1.PersistentVolume) bool {
		return pv.Spec.NodeAffinity == nil || fakecluster.Get[*corev1.Node](w, "", nodeOf(pv)) == nil
	})
	if len(local) == 0 {
		return ""
	}
	pv := pickOne(w, local)
	w.deleteClaimOf(pv)
	w.removeNode(fakecluster.Get[*corev1.Node](w, "", nodeOf(pv)))
	return nodeOf(pv) + " with " + pv.Name
}

// nodeOf returns the node from which alone a PV is reachable.
func nodeOf(pv *corev1.PersistentVolume) string {
	return pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
}
