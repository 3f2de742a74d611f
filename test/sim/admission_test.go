package sim_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// admission is what a write meets before it is stored.
type admission struct {
	// refused is the resource that dispatchers may not write, full that of which a quota allows no
	// more.
	refused, full string
	// stripped is what a webhook takes off, one of strippable.
	stripped string
}

// strippable is what webhooks take off. Labels and annotations of Jobs are not among it: a
// dispatcher that dies before it has deleted a Job without them leaves one that an administrator
// has to delete, see docs/reliability-reference.md.
var strippable = []string{"outcomes of Jobs", "finalizers of Jobs", "finalizers of pods", "gates of pods", "annotations of claims"}

var admissionFaults = []act{
	{"writes of dispatchers are refused", func(w *world) string {
		w.admission.refused = pickOne(w, []string{"jobs", "pods", "persistentvolumes", "persistentvolumeclaims", "controllerrevisions"})
		return w.admission.refused
	}},
	{"writes of dispatchers are allowed", func(w *world) string { w.admission.refused = ""; return "all" }},
	{"a quota is used up", func(w *world) string {
		w.admission.full = pickOne(w, []string{"jobs", "pods"})
		return w.admission.full
	}},
	{"a quota is raised", func(w *world) string { w.admission.full = ""; return "all" }},
	{"a webhook takes something off", func(w *world) string {
		w.admission.stripped = pickOne(w, strippable)
		return w.admission.stripped
	}},
	{"webhooks leave everything on", func(w *world) string { w.admission.stripped = ""; return "all" }},
	{"others write in between", func(w *world) string { w.overtakes = true; return "everything" }},
	{"others stop to write in between", func(w *world) string { w.overtakes = false; return "anything" }},
}

// admit is the world's admission: it may change an object, or refuse it.
func (w *world) admit(by, verb string, obj fakecluster.Object) error {
	resource, a := fakecluster.ResourceOf(obj), w.admission
	a.strip(by, verb, resource, obj)
	pod, isPod := obj.(*corev1.Pod)
	switch {
	case by == fakecluster.DispatcherName && resource == a.refused:
		return forbidden(resource, "a policy refuses it")
	case verb == "create" && resource == a.full:
		return forbidden(resource, "exceeded quota")
	case verb == "create" && isPod && len(pod.Spec.SchedulingGates) == 0:
		return forbidden(resource, "a pod of a run has a gate")
	default:
		return nil
	}
}

func forbidden(resource, why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(why))
}

// changesJobs reports whether a webhook changes Jobs. A dispatcher that gets no answer does not
// learn of it.
func (a admission) changesJobs() bool { return strings.HasSuffix(a.stripped, " of Jobs") }

// strip takes off an object what the webhook takes off, if it is about that.
func (a admission) strip(by, verb, resource string, obj fakecluster.Object) {
	isOurs := func(key, _ string) bool { return strings.HasPrefix(key, contract.Domain) }
	what, of, _ := strings.Cut(a.stripped, " of ")
	if resource != map[string]string{"Jobs": "jobs", "pods": "pods", "claims": "persistentvolumeclaims"}[of] {
		return
	}
	pod, isPod := obj.(*corev1.Pod)
	switch {
	case what == "outcomes":
		stripOutcomes(obj.(*batchv1.Job))
	case what == "annotations" && of == "claims" && by == fakecluster.DispatcherName:
		maps.DeleteFunc(obj.GetAnnotations(), isOurs)
	case verb != "create" || of == "claims":
	case what == "finalizers":
		obj.SetFinalizers(nil)
	case what == "gates" && isPod:
		pod.Spec.SchedulingGates = nil
	}
}

// overtake is what another client writes on an object just before a dispatcher does.
func (w *world) overtake(string, fakecluster.Key, []byte) func(fakecluster.Object) {
	if !w.overtakes || w.rand.IntN(3) > 0 {
		return nil
	}
	retains := w.rand.IntN(4) == 0
	return func(obj fakecluster.Object) {
		w.overtaken++
		fakecluster.Annotate(obj, "example.com/seen", strconv.Itoa(w.overtaken)) // a write that changes nothing is no conflict
		if pv, isPV := obj.(*corev1.PersistentVolume); isPV && retains {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}
	}
}

func stripOutcomes(job *batchv1.Job) {
	for _, uid := range jobs.UIDs(job) {
		if jobs.RecordOf(job, uid).Recorded != nil {
			fixture.Record(job, uid, func(r *jobs.Record) { r.Recorded = nil })
		}
	}
}
