package controller_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// mostWrites is how many writes that are refused or stripped the dispatcher may try in an hour:
// about one a minute.
const mostWrites = 75

// refuseWrites makes the API server refuse the dispatcher's writes of which bad says so. It returns
// how many were refused.
func (w *world) refuseWrites(bad func(verb string, obj fakecluster.Object) bool) *int {
	n := new(int)
	w.Server.Refuse(func(by, verb string, obj fakecluster.Object) error {
		if by != "dispatcher" || !bad(verb, obj) {
			return nil
		}
		*n++
		return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, obj.GetName(), errors.New("policy says no"))
	})
	return n
}

// stripWrites makes a webhook change what the dispatcher writes. It returns how often it did.
func (w *world) stripWrites(strip func(verb string, obj fakecluster.Object) bool) *int {
	n := new(int)
	w.Server.Refuse(func(by, verb string, obj fakecluster.Object) error {
		if by == "dispatcher" && strip(verb, obj) {
			*n++
		}
		return nil
	})
	return n
}

func (w *world) mustPace(writes *int) {
	w.T.Helper()
	if *writes < 3 || *writes > mostWrites {
		w.T.Errorf("%d refused writes in an hour, want 3 to %d", *writes, mostWrites)
	}
}

// mustTell checks that an event was emitted that has these words.
func (w *world) mustTell(about, reason string, words ...string) {
	w.T.Helper()
	all := w.Events.About(about, reason)
	for _, e := range all {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(e.Note, word) }) {
			return
		}
	}
	w.T.Errorf("no event %s about %s with the words %q: %v", reason, about, words, all)
}

// stripsOutcome takes the record with an outcome off a Job, so that the one before it stands.
func stripsOutcome(verb string, obj fakecluster.Object) bool {
	if !hasOutcome(verb, obj) {
		return false
	}
	fixture.Record(obj.(*batchv1.Job), jobs.UIDs(obj.(*batchv1.Job))[0], func(r *jobs.Record) { r.Recorded = nil })
	return true
}

func hasOutcome(_ string, obj fakecluster.Object) bool {
	job, isJob := obj.(*batchv1.Job)
	return isJob && runs.AnyRecorded(job)
}

func TestRetriesGoOnWithoutAnOutcomeOnRecord(t *testing.T) {
	for name, spoil := range map[string]func(*world) *int{
		"refused":  func(w *world) *int { return w.refuseWrites(hasOutcome) },
		"stripped": func(w *world) *int { return w.stripWrites(stripsOutcome) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75), fakecluster.Halfway(75)))
				writes := spoil(w)
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("it is retried and bound", 10*time.Second, w.IsBound("data"))
				w.mustTell("PersistentVolumeClaim/data", "WriteRefused", "Remedy", w.jobName(0)[len("Job/"):])
				w.mustTell(w.jobName(0), "WriteRefused", "Remedy")
				w.Advance(time.Hour)
				w.MustRun("provision", "provision", "provision")
				if kept := len(w.keptPods()); kept != 3 {
					w.T.Errorf("%d pods are kept, want all 3: only they say how the runs ended", kept)
				}
				*writes = 0
				w.Advance(time.Hour)
				if *writes > 3*mostWrites {
					w.T.Errorf("%d writes of three outcomes in an hour", *writes)
				}
				w.Server.Refuse(nil)
				w.Until("the outcomes are on record", 3*time.Minute, func() bool { return len(w.keptPods()) == 0 })
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("nothing is left", 2*time.Hour, w.Empty)
			})
		})
	}
}

// keptPods are the pods with our finalizer.
func (w *world) keptPods() []*corev1.Pod {
	return slices.DeleteFunc(fakecluster.List[*corev1.Pod](w), func(pod *corev1.Pod) bool { return !slices.Contains(pod.Finalizers, jobs.FinalizerRecord) })
}

func TestRetriesGoOnWhereAPolicyKeepsOldRecords(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Fails(75, "claim: once"), fakecluster.Fails(75, "claim: twice")))
		writes := w.refuseWrites(func(_ string, obj fakecluster.Object) bool {
			job, isJob := obj.(*batchv1.Job)
			return isJob && job.Spec.TTLSecondsAfterFinished != nil && *job.Spec.TTLSecondsAfterFinished > 600
		})
		w.Start()
		w.CreateClaim("data")
		w.Until("it is retried and bound", 10*time.Second, w.IsBound("data"))
		w.mustTell("PersistentVolumeClaim/data", "WriteRefused", "policy says no", "Remedy")
		w.mustTell(w.jobName(0), "WriteRefused", "policy says no", "Remedy")
		*writes = 0
		w.Advance(time.Hour)
		if *writes < 3 || *writes > 2*mostWrites {
			w.T.Errorf("%d refused writes on two Jobs in an hour", *writes)
		}
		w.Server.Refuse(nil)
		w.Until("the records are released", 3*time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
	})
}

func TestAnUndoThatSucceededIsNotRepeatedWhereItsRecordIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75)))
		writes := w.refuseWrites(func(_ string, obj fakecluster.Object) bool {
			job, isJob := obj.(*batchv1.Job)
			return isJob && job.Labels[jobs.LabelVerb] == string(contract.Provision) && job.Spec.TTLSecondsAfterFinished != nil
		})
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("it has failed", time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnResult] == "failed" })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("it is undone", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
		w.Advance(time.Hour)
		w.mustPace(writes)
		w.MustRun("provision", "delete")
		w.mustTell(w.jobName(0), "WriteRefused", "Remedy")
		w.Server.Refuse(nil)
		w.Until("nothing is left", 2*time.Hour, w.Empty)
	})
}

func TestRetriesGoOnWhereAWebhookStripsTheClaimsAnnotations(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Fails(75, "claim: once")))
		w.stripWrites(func(_ string, obj fakecluster.Object) bool {
			claim, isClaim := obj.(*corev1.PersistentVolumeClaim)
			if isClaim {
				delete(claim.Annotations, contract.AnnResult)
			}
			return isClaim
		})
		w.Start()
		w.CreateClaim("data")
		w.Until("it is retried and bound", 10*time.Second, w.IsBound("data"))
		w.Until("its record was released", 5*time.Second, func() bool { return len(w.HeldRecords()) == 0 })
		w.mustTell(w.jobName(0), "ResultNotShown", "app/data", contract.AnnResult)
		w.mustTell("PersistentVolumeClaim/data", "ResultNotShown", "app/data", contract.AnnResult)
	})
}

// Each of these makes a Job that would be no record, or that the dispatcher would not see.
func TestRecordBeforeStorageIsKeptFromAWebhookThatStripsJobs(t *testing.T) {
	for name, strip := range map[string]func(*batchv1.Job){
		"its finalizer":          func(job *batchv1.Job) { job.Finalizers = nil },
		"its labels":             func(job *batchv1.Job) { job.Labels = nil },
		"its annotations":        func(job *batchv1.Job) { job.Annotations = nil },
		"its request":            func(job *batchv1.Job) { delete(job.Spec.Template.Annotations, jobs.AnnRequest) },
		"the pods' claim labels": func(job *batchv1.Job) { delete(job.Spec.Template.Labels, contract.LabelClaimUID) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "4")
				writes := w.stripWrites(func(verb string, obj fakecluster.Object) bool {
					job, isJob := obj.(*batchv1.Job)
					if isJob && verb == "create" {
						strip(job)
					}
					return isJob && verb == "create"
				})
				w.Start()
				w.CreateClaim("data")
				w.Advance(time.Hour)
				w.mustPace(writes)
				w.MustRun()
				w.mustTell("PersistentVolumeClaim/data", "WriteRefused", "provision-", "webhook", "Remedy")
				w.Server.Refuse(nil)
				w.Until("the claim is bound", 2*time.Minute, w.IsBound("data"))
				for i := range 8 {
					w.CreateClaim("other-" + string(rune('a'+i)))
				}
				w.Until("the others are bound: no slot is lost", 5*time.Minute, w.AllBound)
			})
		})
	}
}

func TestAPodWithoutItsFinalizerIsReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if pod, isPod := obj.(*corev1.Pod); isPod && verb == "create" {
				pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return strings.HasPrefix(f, contract.Domain) })
			}
			return nil
		})
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.mustTell("PersistentVolumeClaim/data", "WriteRefused", jobs.FinalizerRecord, "Remedy")
		w.mustTell(w.jobName(0), "WriteRefused", jobs.FinalizerRecord)
		w.Server.Refuse(nil)
		w.CreateClaim("next")
		w.Until("the next is bound", time.Minute, w.IsBound("next"))
		w.MustEmit("PersistentVolumeClaim/next", "WriteRefused", 0)
	})
}

func TestARefusedWriteOnAPVIsReportedAndHoldsUpNoResize(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		writes := w.refuseWrites(func(_ string, obj fakecluster.Object) bool {
			pv, isPV := obj.(*corev1.PersistentVolume)
			return isPV && slices.Contains(pv.Finalizers, contract.FinalizerStorage) && pv.Labels["guarded"] != ""
		})
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
			pv.Labels = map[string]string{"guarded": "yes"}
			pv.Finalizers = slices.DeleteFunc(pv.Finalizers, func(f string) bool { return f == contract.FinalizerStorage })
		})
		w.Advance(time.Hour)
		w.mustPace(writes)
		w.mustTell("PersistentVolumeClaim/data", "WriteRefused", "finalizer", "policy says no", "Remedy")
		fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		w.Until("the volume has grown", 5*time.Minute, func() bool { return len(w.RunsOf(contract.Expand)) == 1 })
	})
}

// Each of two volumes of a batch of deletes that waits is rescued, and the Job cannot be deleted.
func TestARefusedCancelIsReportedOnEachVolumeOfABatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		first, a, b := w.provisioned("first"), w.provisioned("a"), w.provisioned("b")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 20 * time.Second}
		fakecluster.Delete(w, fakecluster.User, first)
		w.Until("one runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		fakecluster.Delete(w, fakecluster.User, a)
		fakecluster.Delete(w, fakecluster.User, b)
		w.Until("two Jobs", 2*time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 2 })
		w.Advance(20 * time.Second)
		w.Server.Refuse(refuseOf[*batchv1.Job]("delete", apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "x", errors.New("a policy refuses it"))))
		w.setPolicy(a, corev1.PersistentVolumeReclaimRetain)
		w.setPolicy(b, corev1.PersistentVolumeReclaimRetain)
		w.Advance(10 * time.Minute)
		for _, claim := range []*corev1.PersistentVolumeClaim{a, b} {
			w.mustTell("PersistentVolume/"+contract.PVName(string(claim.UID)), "WriteRefused", "a policy refuses it")
		}
	})
}
