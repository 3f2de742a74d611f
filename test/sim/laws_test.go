package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// What a world has at least.
const (
	leastClaims  = 20
	leastClasses = 3
)

// checkSize checks that enough has happened in a world.
func (w *world) checkSize() {
	used := map[string]bool{}
	ever := w.claimsEver()
	for _, claim := range ever {
		used[*claim.Spec.StorageClassName] = true
	}
	if len(ever) < leastClaims || len(used) < leastClasses {
		w.T.Errorf("a small world: %d claims of %d classes", len(ever), len(used))
	}
}

// checkParallel checks that of no class more containers are at work than its max-parallel, counted
// from what the kubelets run. What nodes have not ended in time counts as half of them at most. Two
// leaders at a time do not see each other's Jobs at once, and the deletes of audits are beside it.
func (w *world) checkParallel() {
	atWork := w.AtWork()
	if len(atWork) < 2 {
		return
	}
	for _, c := range w.spec.classes {
		isOther := func(pod *corev1.Pod) bool {
			return pod.Labels[config.LabelClass] != config.ClassLabel(c.name) || !w.takesSlot(pod)
		}
		if c.maxParallel() < len(atWork) && slotsOf(slices.DeleteFunc(slices.Clone(atWork), isOther), c.maxParallel()) > c.maxParallel() {
			w.T.Errorf("more than %d containers of the class %s are at work", c.maxParallel(), c.name)
		}
	}
}

// slotsOf returns how many slots of a class these pods have.
func slotsOf(pods []*corev1.Pod, limit int) int {
	overdue := 0
	for _, pod := range pods {
		if runs.IsOverdue(pod, time.Now()) {
			overdue++
		}
	}
	return len(pods) - max(0, overdue-(limit+1)/2)
}

// takesSlot reports whether a pod is of a Job that takes a slot, and that one dispatcher alone has
// created.
func (w *world) takesSlot(pod *corev1.Pod) bool {
	job := fakecluster.Get[*batchv1.Job](w, pod.Namespace, pod.Labels[batchv1.JobNameLabel])
	if w.spec.isHard {
		return w.shared.IsZero() // also if the Job does not exist any more
	}
	return job != nil && job.CreationTimestamp.After(w.shared)
}

// checkRest checks a world that is at rest: each claim that lives has its volume, and the audit
// finds nothing but what an administrator has, or an event reports.
func (w *world) checkRest() {
	for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
		w.checkClaim(claim)
	}
	retained, ever, said := w.retained(), w.claimsEver(), w.said()
	for _, found := range audit.Check(w.state(ever)) {
		excuse := said.excuse(found, retained[found.UID], w.cinder.missed[found.UID], func() string { return w.pastOf(ever[found.UID]).left(said.events) })
		if excuse == "" {
			w.T.Errorf("%s: %s: %s", found.Kind, found.Object, found.Why)
		}
		w.counts[fmt.Sprintf("%s excused: %s", found.Kind, excuse)]++
	}
}

// state returns what the audit judges.
func (w *world) state(ever map[string]*corev1.PersistentVolumeClaim) audit.State {
	s := audit.State{
		Now: time.Now(), Volumes: map[string][]audit.Volume{}, Claims: fakecluster.List[*corev1.PersistentVolumeClaim](w),
		PVs: fakecluster.List[*corev1.PersistentVolume](w), Jobs: fakecluster.List[*batchv1.Job](w), Pods: fakecluster.List[*corev1.Pod](w),
	}
	for _, secret := range fakecluster.List[*corev1.Secret](w) {
		s.Secrets = append(s.Secrets, secret.ObjectMeta)
	}
	for _, c := range w.spec.classes {
		s.Volumes[c.name] = nil
	}
	for uid, n := range w.volumes() {
		for range n {
			s.Volumes[*ever[uid].Spec.StorageClassName] = append(s.Volumes[*ever[uid].Spec.StorageClassName], audit.Volume{UID: uid, Volume: "of " + ever[uid].Name + ", " + uid})
		}
	}
	return s
}

// isUsersToChange reports whether a claim cannot be served as it is: it is to be a clone of one
// that is not bound, does not exist any more, is of another class now, or has grown since, or was
// handed a larger volume or one of another class; or it names a PV that it cannot be bound to. A PV
// says less than its volume has if its claim went while that grew.
func (w *world) isUsersToChange(claim *corev1.PersistentVolumeClaim) bool {
	switch {
	case claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound:
		return false
	case claim.Spec.VolumeName != "":
		return true
	case w.asksInVain(claim):
		return true
	case claim.Spec.DataSource == nil:
		return false
	}
	source := w.Claim(claim.Spec.DataSource.Name)
	if source == nil || source.Status.Phase != corev1.ClaimBound || *source.Spec.StorageClassName != *claim.Spec.StorageClassName {
		return true
	}
	wants, pv := claim.Spec.Resources.Requests.Storage(), fakecluster.Get[*corev1.PersistentVolume](w, "", source.Spec.VolumeName)
	isLarger := func(v cindertest.View) bool {
		return v.Name == source.Spec.VolumeName && int64(v.SizeGiB)<<30 > wants.Value()
	}
	return source.Spec.Resources.Requests.Storage().Cmp(*wants) > 0 || slices.ContainsFunc(w.cinder.Volumes(), isLarger) ||
		pv != nil && (pv.Spec.Capacity.Storage().Cmp(*wants) > 0 || pv.Spec.StorageClassName != *claim.Spec.StorageClassName)
}

// volumes returns how many volumes there are for each claim, by its UID.
func (w *world) volumes() map[string]int {
	out := map[string]int{}
	for uid := range w.Storage {
		out[uid]++
	}
	for _, v := range w.cinder.Volumes() {
		out[strings.TrimPrefix(v.Name, "pvc-")]++
	}
	return out
}

// checkRemoval checks that no claim is bound to a volume of Cinder that is about to be deleted.
func (w *world) checkRemoval(id string) {
	volumes := w.cinder.Volumes()
	i := slices.IndexFunc(volumes, func(v cindertest.View) bool { return v.ID == id })
	if i >= 0 {
		w.CheckUnused(volumes[i].Name)
	}
}

func (w *world) checkClaim(claim *corev1.PersistentVolumeClaim) {
	switch n := w.volumes()[strings.TrimPrefix(claim.Spec.VolumeName, "pvc-")]; {
	case claim.DeletionTimestamp != nil:
		w.T.Errorf("the claim %s is terminating for ever", claim.Name)
	case claim.Spec.VolumeName == "":
		w.T.Errorf("the claim %s of the class %s is not bound: %v", claim.Name, *claim.Spec.StorageClassName, claim.Annotations)
	case n != 1:
		w.T.Errorf("the claim %s is bound and has %d volumes", claim.Name, n)
	case fakecluster.Get[*corev1.PersistentVolume](w, "", claim.Spec.VolumeName) == nil:
		w.T.Errorf("the PersistentVolume of the claim %s does not exist any more", claim.Name)
	case claim.Spec.VolumeName == contract.PVName(string(claim.UID)):
		w.checkGrown(claim)
	}
}

// checkGrown checks that a claim has the size that it asks for, or that a fresh event says why it
// has not. A file system that no kubelet grows is left to an administrator: then the PV has that
// size. A quota counts all that its volume has.
func (w *world) checkGrown(claim *corev1.PersistentVolumeClaim) {
	asked, has := claim.Spec.Resources.Requests.Storage(), claim.Status.Capacity.Storage()
	if claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimNodeResizePending {
		has = fakecluster.Get[*corev1.PersistentVolume](w, "", claim.Spec.VolumeName).Spec.Capacity.Storage()
	}
	if has.Cmp(*asked) < 0 && !slices.ContainsFunc(w.Events.About("PersistentVolumeClaim/"+claim.Name, ""), w.said().isFresh) {
		w.T.Errorf("the claim %s asks for %s and has %s: %v", claim.Name, asked, has, claim.Status)
	}
	for _, v := range w.cinder.Volumes() {
		if v.Name == claim.Spec.VolumeName && int64(v.SizeGiB)<<30 < has.Value() {
			w.T.Errorf("the claim %s has %s, and its volume %d GiB", claim.Name, has, v.SizeGiB)
		}
		if v.Name == claim.Spec.VolumeName && int64(v.SizeGiB)<<30 > max(asked.Value(), claim.Status.AllocatedResources.Storage().Value()) {
			w.T.Errorf("a quota counts less than the %d GiB that the volume of the claim %s has: %v", v.SizeGiB, claim.Name, claim.Status)
		}
	}
}

// retained returns the UIDs of the claims whose volumes an administrator has: the policy of the PV
// was Retain in the end, or once while the PV was terminating, or the PV was deleted before a
// dispatcher had put its finalizer on it. No finalizer can be put on a terminating PV.
func (w *world) retained() map[string]bool {
	out, unprotected, freed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, change := range w.Server.History() {
		for _, obj := range []fakecluster.Object{change.Old, change.Now} {
			pv, isPV := obj.(*corev1.PersistentVolume)
			if !isPV || strings.HasPrefix(pv.Name, copies) {
				continue // a copy keeps nothing once it does not exist any more
			}
			uid := pv.Annotations[contract.AnnClaimUID]
			out[uid] = pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
			if pv.DeletionTimestamp == nil {
				unprotected[uid] = !slices.Contains(pv.Finalizers, contract.FinalizerStorage)
			} else {
				freed[uid] = freed[uid] || out[uid]
			}
		}
	}
	for uid := range out {
		out[uid] = out[uid] || unprotected[uid] || freed[uid]
	}
	return out
}

// claimsEver returns all claims that there ever were, by UID.
func (w *world) claimsEver() map[string]*corev1.PersistentVolumeClaim {
	out := map[string]*corev1.PersistentVolumeClaim{}
	for _, change := range w.Server.History() {
		if claim, isClaim := change.Now.(*corev1.PersistentVolumeClaim); isClaim {
			out[string(claim.UID)] = claim
		}
	}
	return out
}
