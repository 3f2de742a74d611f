package sim_test

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// oneOf lets something be done with one of the objects that are wanted, and returns its name.
func oneOf[O fakecluster.Object](w *world, is func(O) bool, do func(O)) string {
	all := fakecluster.ListOf(w, is)
	if len(all) == 0 {
		return ""
	}
	obj := pickOne(w, all)
	do(obj)
	return obj.GetName()
}

func isBegun(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

// isOnSilentNode reports whether a pod of a Job may be at work on a node that is cut off. Of one that has
// ended, the Job is the only record of what it left: who strips that Job takes the record away.
func (w *world) isOnSilentNode(job *batchv1.Job) bool {
	return len(fakecluster.ListOf(w, func(pod *corev1.Pod) bool {
		return pod.Labels[batchv1.JobNameLabel] == job.Name && w.CutOff[pod.Spec.NodeName] && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	})) > 0
}

// cutOff cuts a node off. What runs there goes on.
func (w *world) cutOff() string {
	return oneOf(w, func(node *corev1.Node) bool { return !w.CutOff[node.Name] }, func(node *corev1.Node) {
		w.CutOff[node.Name] = true
		w.setReady(node, corev1.ConditionUnknown)
	})
}

// reconnect lets every node that was cut off reach the API server again. Its kubelet ends what it
// must end before it reports that it is there.
func (w *world) reconnect() string {
	back := fakecluster.ListOf(w, func(node *corev1.Node) bool { return w.CutOff[node.Name] })
	clear(w.CutOff)
	if len(back) == 0 {
		return ""
	}
	w.move("kubelets")
	for _, node := range back {
		w.setReady(node, corev1.ConditionTrue)
	}
	return "all"
}

// phases is what a container of a hard world does. A provision fails half of the time when it has
// made the volume.
func (w *world) phases(r *fakecluster.Run) []fakecluster.Phase {
	draw := func() time.Duration {
		return pickOne(w, []time.Duration{0, time.Second, 10 * time.Second, 4 * time.Minute})
	}
	if r.Verb == contract.Delete {
		w.checkKept(r)
	}
	phases := fakecluster.InPhases(draw(), draw(), draw())(r)
	if r.Verb == contract.Provision && !w.calm && w.rand.IntN(2) == 0 {
		phases[1].Does = func(*fakecluster.Run) *fakecluster.Exit {
			return &fakecluster.Exit{Code: 75, Message: "claim: halfway"}
		}
	}
	return phases
}

// setImage changes what containers do.
func (w *world) setImage(change func(*fakecluster.Image)) {
	image := w.Images[fakecluster.GoldImage]
	change(&image)
	w.Images[fakecluster.GoldImage] = image
}

// How containers do not start.
const (
	startFails = "StartError"
	rejected   = "OutOfcpu"
)

// setStart says how containers do not start, or nothing if they do.
func (w *world) setStart(how string) string {
	w.setImage(func(image *fakecluster.Image) {
		image.StartFails, image.Rejected = "", ""
		switch how {
		case startFails:
			image.StartFails = how
		case rejected:
			image.Rejected = how
		}
	})
	return "all"
}

// writeByHand writes the PV of a volume that was made for a claim that waits.
func (w *world) writeByHand() string {
	return oneOf(w, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && w.Storage[string(claim.UID)] && w.PVOf(claim) == nil
	}, func(claim *corev1.PersistentVolumeClaim) {
		w.WriteByHand(claim)
		w.move("PV controller")
	})
}

// deleteByHand deletes a PV that was written by hand and whose claim does not exist any more. If
// there is none, its user deletes one of these claims before.
func (w *world) deleteByHand() string {
	is := func(pv *corev1.PersistentVolume) bool {
		return pv.Annotations[contract.AnnClaimUID] == "" && pv.DeletionTimestamp == nil
	}
	return oneOf(w, is, func(pv *corev1.PersistentVolume) {
		w.deleteClaimOf(pv)
		w.move("PV controller")
		w.move("PV controller")
		fakecluster.Delete(w, fakecluster.Admin, pv)
	})
}

// waits reports whether a claim of the class that can be cloned waits.
func waits(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil && claim.Spec.VolumeName == ""
}

// askForClone asks for a claim that waits to be a copy of one that is bound.
func (w *world) askForClone() string {
	source := oneOf(w, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil
	}, func(*corev1.PersistentVolumeClaim) {})
	if source == "" {
		return ""
	}
	about := oneOf(w, waits, func(claim *corev1.PersistentVolumeClaim) { w.AskForClone(claim, fakecluster.ClaimNamespace+"/"+source) })
	if about == "" {
		return ""
	}
	return about + " of " + source
}

// sourcesAsked returns the names of the claims that claims which wait are to be copies of.
func (w *world) sourcesAsked() []string {
	var out []string
	for _, claim := range fakecluster.ListOf(w, waits) {
		if _, name, asks := strings.Cut(claim.Annotations[contract.AnnCloneRequest], "/"); asks && w.Claim(name) != nil {
			out = append(out, name)
		}
	}
	return out
}

// asksInVain reports whether a claim is to be a copy of one that does not exist any more, or waits.
func (w *world) asksInVain(claim *corev1.PersistentVolumeClaim) bool {
	_, name, asks := strings.Cut(claim.Annotations[contract.AnnCloneRequest], "/")
	if !asks {
		return false
	}
	source := w.Claim(name)
	return source == nil || source.Status.Phase != corev1.ClaimBound
}

// forceOnLost cuts the node of a pod off whose container works, and deletes the pod by force. Half
// of the time its claim is deleted, too, when the dispatcher has seen that.
func (w *world) forceOnLost() string {
	var claims []*corev1.PersistentVolumeClaim
	about := oneOf(w, isBegun, func(pod *corev1.Pod) {
		claims = w.membersOf(pod)
		w.CutOff[pod.Spec.NodeName] = true
		w.setReady(fakecluster.Get[*corev1.Node](w, "", pod.Spec.NodeName), corev1.ConditionUnknown)
		w.ForceDelete(pod)
	})
	if about == "" {
		return ""
	}
	for range 3 {
		w.doAll()
		w.pass(20 * time.Second)
	}
	if len(claims) > 0 && w.rand.IntN(2) == 0 {
		about += " and " + claims[0].Name
		fakecluster.Delete(w, fakecluster.User, claims[0])
	}
	w.doAll()
	return about
}

// deleteSource deletes a claim that another is to be a copy of.
func (w *world) deleteSource() string {
	all := w.sourcesAsked()
	if len(all) == 0 {
		return ""
	}
	name := pickOne(w, all)
	fakecluster.Delete(w, fakecluster.User, w.Claim(name))
	return name
}

// replaceSource deletes such a claim, and creates another of its name, which is served.
func (w *world) replaceSource() string {
	name := w.deleteSource()
	for range 20 {
		if name == "" || w.Claim(name) == nil {
			break
		}
		w.move("PV controller")
	}
	if name == "" || w.Claim(name) != nil {
		return ""
	}
	w.createNamed(name)
	return name
}

// waitsMost is how long a claim may wait before an event says why.
const waitsMost = 50 * time.Minute // Kubernetes keeps events for an hour

// checkWaiting lets 70 minutes pass without acts. Then each claim that waits has a fresh event.
func (w *world) checkWaiting() {
	if len(w.Processes()) == 0 {
		return
	}
	for range 70 {
		w.doAll()
		w.pass(time.Minute)
	}
	for _, claim := range fakecluster.ListOf(w, waits) {
		told := slices.ContainsFunc(w.Events.About("PersistentVolumeClaim/"+claim.Name, ""), func(e fakecluster.Event) bool { return time.Since(e.At) < waitsMost })
		if !told && time.Since(claim.CreationTimestamp.Time) > waitsMost {
			w.T.Errorf("the claim %s waits since %s, and no event of the last %s says why", claim.Name, claim.CreationTimestamp.Sub(w.began), waitsMost)
		}
	}
}

// checkEvents checks that each event has a reason: the API server refuses one without.
func (w *world) checkEvents() {
	for _, e := range w.Events.About("", "") {
		if e.Reason == "" {
			w.T.Errorf("an event about %s has no reason: %s", e.About, e.Note)
		}
	}
}

// checkKept checks that the volume that a run is about to delete was not kept by the last PV that
// showed it: it was in use, and its policy was Retain until an administrator deleted the PV.
func (w *world) checkKept(r *fakecluster.Run) {
	var last *corev1.PersistentVolume
	used := false
	for _, change := range w.Server.History() {
		if pv, is := change.Now.(*corev1.PersistentVolume); is && pv.Name == r.Request.PVName {
			last, used = pv, used || pv.Status.Phase == corev1.VolumeBound
		}
	}
	if used && last.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		w.T.Errorf("the volume of %s is deleted, and its PV was retained", r.Request.Name)
	}
}

// checkForeign checks that no dispatcher has deleted a Job of the other provisioner.
func (w *world) checkForeign() {
	for _, change := range w.Server.History() {
		job, is := change.Old.(*batchv1.Job)
		if !is || change.Verb != "delete" || change.By != fakecluster.DispatcherName || fakecluster.FinishedCondition(job) != nil || !isWanted(w, job) {
			continue
		}
		// Its own dispatcher deletes a Job whose pod is not confirmed in time.
		if w.hasOther() && change.At.Sub(job.CreationTimestamp.Time) < 5*time.Minute {
			w.T.Errorf("the unfinished Job %s is deleted, by the dispatcher of the other provisioner", job.Name)
		}
	}
}

// isWanted reports whether the claim of a Job still exists.
func isWanted(w *world, job *batchv1.Job) bool {
	return slices.ContainsFunc(fakecluster.List[*corev1.PersistentVolumeClaim](w), func(claim *corev1.PersistentVolumeClaim) bool {
		return job.Labels[contract.LabelClaimUID] == string(claim.UID)
	})
}

// checkUndone checks that nothing is undone of a claim for which no container ever ran.
func (w *world) checkUndone() {
	ran := map[string]bool{}
	for _, r := range w.Runs {
		ran[r.Request.UID] = ran[r.Request.UID] || r.Verb == contract.Provision
	}
	for _, change := range w.CreatedJobs(contract.Delete) {
		if uid := change.Now.GetLabels()[contract.LabelClaimUID]; !ran[uid] {
			w.T.Errorf("the Job %s undoes what a container made that never ran", change.Name)
		}
	}
}
