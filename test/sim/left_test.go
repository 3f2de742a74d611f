package sim_test

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// past is what has happened to the volume of one claim, as far as it can explain that the volume
// stays in the storage.
type past struct {
	claim *corev1.PersistentVolumeClaim
	// jobs are the names of the Jobs that served the claim.
	jobs map[string]bool
	// forgotten: an administrator has given up a record. retained: the policy was Retain. removed:
	// the PV was deleted. rewritten: an administrator has written it. stripped: a Job was deleted by
	// another client than the dispatcher and Kubernetes, finalizers and all.
	forgotten, retained, removed, rewritten, stripped bool
}

// pastOf reads the history of one claim.
func (w *world) pastOf(claim *corev1.PersistentVolumeClaim) past {
	p := past{claim: claim, jobs: map[string]bool{}, retained: classOf(claim).policy == corev1.PersistentVolumeReclaimRetain}
	for _, change := range w.Server.History() {
		switch obj := change.Now.(type) {
		case *batchv1.Job:
			if slices.Contains(jobs.UIDs(obj), string(claim.UID)) {
				p.jobs[obj.Name] = true
				p.forgotten = p.forgotten || obj.Annotations[jobs.AnnForget] == string(claim.UID)
			}
		case *corev1.PersistentVolume:
			if obj.Name == contract.PVName(string(claim.UID)) {
				p.retained = p.retained || obj.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
				p.rewritten = p.rewritten || change.By == fakecluster.Admin
			}
		}
		job, wasJob := change.Old.(*batchv1.Job)
		p.stripped = p.stripped || wasJob && change.Verb == "delete" && change.By == fakecluster.Admin && slices.Contains(jobs.UIDs(job), string(claim.UID))
		p.removed = p.removed || change.Now == nil && change.Name == contract.PVName(string(claim.UID))
	}
	return p
}

// left returns why events say that the volume of the claim stays in the storage, or nothing. What
// they say has to be so: an undo that is left out for no reason would be excused by its own event.
func (p past) left(events []fakecluster.Event) string {
	for _, e := range events {
		if e.Reason != "LeftBehind" || !p.isAbout(e) {
			continue
		}
		for _, c := range p.causes() {
			if c.isSo && strings.Contains(e.Note, c.note) {
				return c.note
			}
		}
	}
	return ""
}

// cause is what an event says of the reason, and whether it is so.
type cause struct {
	note string
	isSo bool
}

func (p past) causes() []cause {
	return []cause{
		{reason.Forgotten, p.forgotten},
		{reason.Kept, p.retained},
		{reason.LeftRetained, p.retained},
		{reason.Released, p.removed},
		{"node-gone: forget", slices.Contains(classOf(p.claim).keys, "forget")},
		{"was removed before its volume was deleted", p.removed},
		{"which was its record, was removed by another client", p.stripped},
		{"since the PersistentVolume", p.rewritten}, // it does not prove anything any more
	}
}

// isAbout reports whether an event is about the claim's PV, or about the claim on a Job of it.
func (p past) isAbout(e fakecluster.Event) bool {
	name, isJob := strings.CutPrefix(e.About, "Job/")
	if strings.HasPrefix(e.About, "Pod/") {
		return strings.Contains(e.Note, "the claim "+string(p.claim.UID)+" ")
	}
	return e.About == "PersistentVolume/"+contract.PVName(string(p.claim.UID)) || isJob && p.jobs[name] && strings.Contains(e.Note+" ", "/"+p.claim.Name+" ")
}
