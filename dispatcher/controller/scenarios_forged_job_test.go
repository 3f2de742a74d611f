package controller_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// forgedJob is a Job of the config namespace team as another client than the dispatcher writes it: by
// its record a run for a claim has described the PV.
func (w *world) forgedJob(own, of *corev1.PersistentVolumeClaim, change func(*batchv1.Job, *corev1.PersistentVolume)) *batchv1.Job {
	w.T.Helper()
	uid, forged := string(of.UID), &batchv1.Job{}
	for _, c := range w.CreatedJobs(contract.Provision) {
		if job := c.Now.(*batchv1.Job); jobs.UIDs(job)[0] == string(own.UID) {
			text, err := json.Marshal(job)
			w.must(err)
			w.must(json.Unmarshal([]byte(strings.ReplaceAll(string(text), string(own.UID), uid)), forged))
		}
	}
	forged.ObjectMeta = metav1.ObjectMeta{
		Name: "provision-" + uid + "-9", Namespace: "team", Labels: forged.Labels, Annotations: forged.Annotations, Finalizers: []string{jobs.FinalizerRecord},
	}
	forged.Status, forged.Spec.Suspend = batchv1.JobStatus{}, new(true)
	var pv corev1.PersistentVolume
	w.must(json.Unmarshal([]byte(forged.Spec.Template.Annotations[jobs.AnnPV]), &pv))
	pv.Spec.ClaimRef.Name, pv.Spec.StorageClassName = of.Name, *of.Spec.StorageClassName
	change(forged, &pv)
	text, err := json.Marshal(pv)
	w.must(err)
	forged.Spec.Template.Annotations[jobs.AnnPV] = string(text)
	record, err := jobs.ChangeRecords(forged, func(r *jobs.Record) {
		r.Name, r.Class, r.DescribesPV = of.Name, pv.Spec.StorageClassName, true
		r.Described = `{"source":{"nfs":{"server":"evil.example","path":"/evil"}}}`
		r.Recorded = &jobs.Outcome{Verdict: contract.Done, ExitCode: new(int32(0)), Finished: time.Now()}
	}, uid)
	w.must(err)
	forged.Annotations[jobs.AnnRecord] = record[jobs.AnnRecord]
	return forged
}

func (w *world) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Whoever may create Jobs in the config namespace team, and nothing else anywhere, writes the record
// of a provision for a claim of the class gold, whose config is in another namespace. No PV is
// created from it, an event says why, and the claim gets its own volume. deploy/base refuses such a
// Job, too.
func TestNoPVIsCreatedFromAJobOfAnotherNamespaceThanItsConfigs(t *testing.T) {
	for name, change := range map[string]func(w *world, job *batchv1.Job, pv *corev1.PersistentVolume){
		"the config revision of the own class": func(*world, *batchv1.Job, *corev1.PersistentVolume) {},
		"the config revision of the other namespace": func(w *world, job *batchv1.Job, pv *corev1.PersistentVolume) {
			w.nameRevision(job, pv, w.revisionIn(fakecluster.ConfigNamespace))
		},
		"a config revision that does not exist": func(w *world, job *batchv1.Job, pv *corev1.PersistentVolume) { w.nameRevision(job, pv, "team/none") },
		"a PV of the own class":                 func(_ *world, _ *batchv1.Job, pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "silver" },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.twoNamespaces()
				w.Start()
				own := w.CreateClaim("own", ofSilver)
				w.Until("the claim of the own class is bound", time.Minute, w.IsBound("own"))
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
				w.UpdateConfig("max-parallel", "1")
				w.CreateClaim("other")
				w.Until("the slot is in use", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
				victim := w.CreateClaim("data")
				w.Advance(time.Second)
				forged := w.forgedJob(own, victim, func(job *batchv1.Job, pv *corev1.PersistentVolume) { change(w, job, pv) })
				fakecluster.Create(w, fakecluster.User, forged)
				w.Advance(time.Hour)
				w.mustTell("PersistentVolumeClaim/data", "ProvisioningFailed", "no PersistentVolume is created", "Remedy")
				if w.PVOf(victim) == nil { // nothing can be undone under what it names, so its record is given up
					fakecluster.Update(w, fakecluster.Admin, forged, func(job *batchv1.Job) { job.Annotations[jobs.AnnForget] = string(victim.UID) })
				}
				w.Until("the claim is bound", time.Hour, w.IsBound("data"))
				if pv := w.PVOf(victim); pv.Spec.NFS != nil && pv.Spec.NFS.Server == "evil.example" || pv.Spec.StorageClassName != "gold" {
					w.T.Errorf("the claim got the volume that the forged Job describes: %+v", pv.Spec)
				}
			})
		})
	}
}

// A record by which a volume may have been made for a claim that no longer exists names the config
// revision of another namespace, or its PV does. Nothing is deleted with that config's login.
func TestNothingIsUndoneWithTheConfigOfAnotherNamespaceThanTheJobs(t *testing.T) {
	for name, change := range map[string]func(w *world, job *batchv1.Job, pv *corev1.PersistentVolume){
		"the Job and its PV": func(w *world, job *batchv1.Job, pv *corev1.PersistentVolume) {
			w.nameRevision(job, pv, w.revisionIn(fakecluster.ConfigNamespace))
		},
		"the PV": func(w *world, _ *batchv1.Job, pv *corev1.PersistentVolume) {
			pv.Spec.StorageClassName = "silver"
			pv.Annotations[contract.AnnRevision] = w.revisionIn(fakecluster.ConfigNamespace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.twoNamespaces()
				w.Start()
				own, gone := w.CreateClaim("own", ofSilver), w.CreateClaim("gone")
				w.Until("both are bound", time.Minute, w.AllBound)
				forged := w.forgedJob(own, gone, func(job *batchv1.Job, pv *corev1.PersistentVolume) { change(w, job, pv) })
				fakecluster.Delete(w, fakecluster.User, gone)
				w.Until("its volume is deleted", time.Hour, func() bool { return w.PVOf(gone) == nil })
				before := w.deletesIn(fakecluster.ConfigNamespace)
				w.Advance(3 * time.Hour) // its own Jobs have expired
				fakecluster.Create(w, fakecluster.User, forged)
				w.Advance(time.Hour)
				if n := w.deletesIn(fakecluster.ConfigNamespace); n != before {
					w.T.Errorf("%d Jobs delete what a forged record names", n-before)
				}
				if pv := w.PVOf(gone); pv != nil {
					w.T.Errorf("a PV was created from it: %+v", pv)
				}
			})
		})
	}
}

// deletesIn returns how many deletes were launched in a namespace.
func (w *world) deletesIn(namespace string) int {
	n := 0
	for _, c := range w.CreatedJobs(contract.Delete) {
		if c.Now.GetNamespace() == namespace {
			n++
		}
	}
	return n
}

func (w *world) nameRevision(job *batchv1.Job, pv *corev1.PersistentVolume, revision string) {
	job.Annotations[contract.AnnRevision], pv.Annotations[contract.AnnRevision] = revision, revision
}

// revisionIn returns a config revision that is stored in a namespace, as Jobs name it.
func (w *world) revisionIn(namespace string) string {
	w.T.Helper()
	for _, c := range w.CreatedJobs(contract.Provision) {
		if job := c.Now.(*batchv1.Job); job.Namespace == namespace {
			return job.Annotations[contract.AnnRevision]
		}
	}
	w.T.Fatal("no Job ran in " + namespace)
	return ""
}
