package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// withSidecar makes the containers of the class gold do something beside a sidecar that never ends.
func (w *world) withSidecar(does func(*fakecluster.Run) fakecluster.Exit, keys ...string) {
	w.SetUpGold(does, keys...)
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: does, Sidecar: true}
}

// A mesh adds a container to the pod that never ends. The end of the container is the end of the
// run, of each verb, and not the deadline of its pod.
func TestARunEndsWithItsContainerBesideASidecar(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Sidecar: true}
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", 10*time.Second, w.IsBound("data"))
		w.Until("the result is shown", 10*time.Second, func() bool { return w.Claim("data").Annotations[contract.AnnResult] == "succeeded" })
		w.Until("its pod has ended", 10*time.Second, func() bool { return len(w.RunningPods()) == 0 })
		w.requestSize("2Gi")
		w.Until("it has grown", 10*time.Second, func() bool {
			return len(w.RunsOf(contract.Expand)) == 1 && w.PVOf(claim).Spec.Capacity.Storage().String() == "2Gi"
		})
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("nothing is left", 10*time.Second, w.Empty)
		w.MustRun("provision", "expand", "delete")
		w.Until("no pod is kept", time.Minute, func() bool { return len(w.keptPods()) == 0 })
		if n := len(w.CreatedJobs("")); n != 3 {
			w.T.Errorf("%d Jobs, want one for each verb", n)
		}
	})
}

// With write-pv: dispatcher nothing but the outcome brings the PV.
func TestADescribedPVIsCreatedBesideASidecar(t *testing.T) {
	inWorld(t, func(w *world) {
		w.withSidecar(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			return fakecluster.Exit{Message: `{"source":{"nfs":{"server":"filer","path":"/a"}}}`}
		}, "write-pv", "dispatcher", "service-account-name", "")
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 10*time.Second, w.IsBound("data"))
	})
}

// The exit code is the verdict, also after the sidecar was ended, whoever leads then.
func TestTheExitCodeIsTheVerdictBesideASidecar(t *testing.T) {
	for name, prepare := range map[string]func(*world) int64{
		"one leader":                         func(*world) int64 { return 0 },
		"each leader dies after a write":     func(w *world) int64 { w.DieAfterEveryWrite = true; return 1 },
		"the outcome is refused for a while": refuseOutcomes,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.withSidecar(fakecluster.Script(fakecluster.Fails(65, "claim: no such size")))
				w.StartMortal(prepare(w))
				w.CreateClaim("data")
				w.Until("the refusal is shown", 3*time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnExitCode] == "65" })
				if got := recordOf(w.CreatedJobs("")[0]); got.Attempt != 1 {
					w.T.Errorf("it is attempt %d", got.Attempt)
				}
				w.MustShow(map[string]string{"result": "failed", "message": "no such size"})
				w.Until("the claim is bound", 12*time.Minute, w.IsBound("data"))
				w.MustRun("provision", "provision")
			})
		})
	}
}

// refuseOutcomes refuses the writes on Jobs for two minutes, in which the sidecar is ended.
func refuseOutcomes(w *world) int64 {
	start := time.Now()
	w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
		if _, isJob := obj.(*batchv1.Job); isJob && verb == "patch" && time.Since(start) < 2*time.Minute {
			return apierrors.NewForbidden(batchv1.Resource("jobs"), "", nil)
		}
		return nil
	})
	return 0
}

// Until its pod has ended, the next run of the claim is not started. Its slot is free before.
func TestOneRunPerClaimAlsoBesideASidecarThatEndsSlowly(t *testing.T) {
	inWorld(t, func(w *world) {
		w.withSidecar(fakecluster.Script(fakecluster.Fails(75, "again")), "max-parallel", "1")
		w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if pod, isPod := obj.(*corev1.Pod); isPod && verb == "patch" && *pod.Spec.ActiveDeadlineSeconds == 1 {
				pod.Spec.ActiveDeadlineSeconds = new(int64(40)) // as a grace period of its sidecar would
			}
			return nil
		})
		w.Start()
		w.CreateClaim("data")
		w.Until("its container has ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.CreateClaim("other")
		w.Until("the slot is free for another claim", 10*time.Second, func() bool { return len(w.Runs) == 2 })
		if n := len(w.keptPods()); n < 2 {
			w.T.Errorf("%d pods are kept while their sidecars run", n)
		}
		w.Until("all are bound", 3*time.Minute, w.AllBound)
		if last := w.Runs[len(w.Runs)-1]; last.At.Sub(w.Runs[0].At) < 30*time.Second {
			w.T.Errorf("the next run started %s after the first, whose pod had not ended", last.At.Sub(w.Runs[0].At))
		}
	})
}
