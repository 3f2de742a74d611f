package controller_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// describes is an image with write-pv: dispatcher: it says where the volume is.
func describes(r *fakecluster.Run) fakecluster.Exit {
	r.CreateVolume()
	return fakecluster.Exit{Message: `{"source":{"nfs":{"server":"10.10.2.4","path":"/gold"}}}`}
}

// setUpDescribed sets up a class whose PVs the dispatcher creates.
func (w *world) setUpDescribed() {
	w.SetUpGold(fakecluster.Always(describes), "write-pv", "dispatcher", "service-account-name", "")
}

// described: a claim is bound to a PV that the dispatcher has created, and is deleted.
func described(w *world, last int64) string {
	w.setUpDescribed()
	w.StartMortal(last)
	claim := w.CreateClaim("data")
	w.Until("the claim is bound", 3*time.Hour, w.IsBound("data"))
	w.Until("its record was released", 3*time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
	w.Until("its result is shown", 3*time.Hour, func() bool { return w.Claim("data").Annotations[contract.AnnResult] != "" })
	w.MustShow(map[string]string{"result": "succeeded", "attempts": "1"})
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("nothing is left", 3*time.Hour, w.Empty)
	return w.sum()
}

// The claim is deleted when its PV is about to be created. Another leader may be about to create
// it, too, so the volume is not undone: the PV is created, and its volume is reclaimed.
func TestADescribedPVIsCreatedFromTheRecordAlthoughItsClaimIsDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.setUpDescribed()
		failed, deleted := 0, false
		w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if _, isPV := obj.(*corev1.PersistentVolume); !isPV || verb != "create" || deleted {
				return nil
			}
			failed++
			return apierrors.NewInternalError(errors.New("etcd has no leader"))
		})
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the creation of the PV has failed", time.Hour, func() bool { return failed > 0 })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the claim is deleted", time.Minute, func() bool { return w.Claim("data") == nil })
		deleted = true
		w.Until("nothing is left", 3*time.Hour, w.Empty)
		w.MustRun("provision", "delete")
		for _, created := range w.CreatedJobs(contract.Delete) {
			if jobs.RecordOf(created.Now.(*batchv1.Job), string(claim.UID)).Volume == "" {
				w.T.Errorf("the Job %s undoes the volume", created.Now.GetName())
			}
		}
	})
}

// The API server refuses the PV. The claim's user learns that once for each attempt, and the run
// has failed.
func TestADescribedPVThatTheAPIServerRefusesIsAFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		w.setUpDescribed()
		refused := 0
		w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if _, isPV := obj.(*corev1.PersistentVolume); !isPV || verb != "create" || refused == 2 {
				return nil
			}
			refused++
			return apierrors.NewBadRequest("no such server") // of no effect on the next attempt
		})
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Hour, w.IsBound("data"))
		w.MustRun("provision")
	})
}

// Only a run that ends with 0 describes a PV. What another one said is its message, and no text that
// is not JSON.
func TestTheOutputOfARunThatFailedIsNoDescription(t *testing.T) {
	for name, end := range map[string]fakecluster.Exit{
		"refused":      {Code: 65, Message: "claim: no such export"},
		"failed":       {Code: 75},
		"its node off": {Code: 255, Reason: "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				fails := func(*fakecluster.Run) fakecluster.Exit { return end }
				w.SetUpGold(fakecluster.Script(fails, describes), "write-pv", "dispatcher", "service-account-name", "")
				w.Start()
				w.CreateClaim("data")
				w.Until("the claim is bound", time.Hour, w.IsBound("data"))
				emitted := w.Events.About(onData, "ProvisioningFailed")
				if len(emitted) != 1 || strings.Contains(emitted[0].Note, "must write") {
					w.T.Errorf("the events are %v", emitted)
				}
			})
		})
	}
}
