package controller_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

const (
	firstScript  = "#!/bin/bash\necho first\n"
	editedScript = "#!/bin/bash\necho edited\n"
)

// scriptOf returns the script of the only Job of a verb for a claim.
func (w *world) scriptOf(verb contract.Verb, uid string) string {
	w.T.Helper()
	var out []string
	for _, c := range w.CreatedJobs(verb) {
		if job := c.Now.(*batchv1.Job); jobs.UIDs(job)[0] == uid {
			out = append(out, job.Spec.Template.Annotations[jobs.AnnScript])
		}
	}
	if len(out) != 1 {
		w.T.Fatalf("%d Jobs of the verb %s for the claim %s, want 1", len(out), verb, uid)
	}
	return out[0]
}

// A text that makes volumes elsewhere would find nothing to delete, and end with success.
func TestAVolumeIsDeletedByTheScriptThatMadeIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "script", firstScript)
		w.Start()
		old := w.CreateClaim("old")
		w.Until("the first is bound", time.Minute, w.IsBound("old"))
		w.UpdateConfig("script", editedScript)
		w.Advance(time.Second) // the caches have it
		young := w.CreateClaim("young")
		w.Until("the second is bound", time.Minute, w.IsBound("young"))
		for _, name := range []string{"old", "young"} {
			fakecluster.Delete(w, fakecluster.User, w.Claim(name))
		}
		w.Until("nothing is left", time.Minute, w.Empty)
		for uid, want := range map[string]string{string(old.UID): firstScript, string(young.UID): editedScript} {
			for _, verb := range []contract.Verb{contract.Provision, contract.Delete} {
				if got := w.scriptOf(verb, uid); got != want {
					w.T.Errorf("%s ran %q, want %q", verb, got, want)
				}
			}
		}
	})
}

// The delete of the first script always fails, and an administrator has corrected it.
func TestADeleteThatFailedTwiceUsesTheEditedScript(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete && len(w.CreatedJobs(contract.Delete)) < 3 {
				return fakecluster.Exit{Code: 78}
			}
			return fakecluster.Works(r)
		}, "script", firstScript)
		w.Start()
		w.CreateClaim("data")
		w.Until("it is bound", time.Minute, w.IsBound("data"))
		w.UpdateConfig("script", editedScript)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("nothing is left", 2*time.Hour, w.Empty)
		all := w.CreatedJobs(contract.Delete)
		if got := all[len(all)-1].Now.(*batchv1.Job).Spec.Template.Annotations[jobs.AnnScript]; got != editedScript || len(all) < 3 {
			w.T.Errorf("the last of %d deletes ran %q", len(all), got)
		}
	})
}

// mostScripts is the highest number of scripts that were at work at a time in those.
func (w *world) mostScripts() int { return w.mostOf(jobs.ParallelOf) }

// The scripts of a batch are at work in one pod, and count one by one. A burst of one verb leaves a
// slot to the others.
func TestMaxParallelBoundsTheScriptsOfAllPods(t *testing.T) {
	const claims, parallel = 48, 10
	inWorld(t, func(w *world) {
		w.options.Workers = 10
		w.SetUpGold(fakecluster.Works, "script", "#!/bin/bash\n\"$1\"\n", "batch-size", "16", "max-parallel", fmt.Sprint(parallel))
		for i := range claims {
			w.CreateClaim(fmt.Sprintf("data-%d", i))
		}
		w.Start()
		w.Until("all are bound", time.Minute, func() bool { return len(w.Storage) == claims && w.AllBound() })
		if n := len(w.CreatedJobs("")); n > 5 {
			w.T.Errorf("%d Jobs for %d claims, want at most 5: batches of %v", n, claims, w.batches(contract.Provision))
		}
		for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		w.Until("nothing is left", time.Minute, w.Empty)
		if got := w.mostScripts(); got <= parallel/2 || got >= parallel {
			w.T.Errorf("%d scripts at a time, want more than %d, and less than %d", got, parallel/2, parallel)
		}
	})
}
