package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// ownSeries begin with this.
const ownSeries = "flex_dispatcher_own_seconds"

// ownPhases are those of one run of a verb: how often each was counted, and how many seconds it took in all.
func ownPhases(out map[string]float64, verb string, times float64, seconds map[string]float64) map[string]float64 {
	for _, phase := range []string{"launch", "confirm", "record", "release"} {
		labels := `{phase="` + phase + `",verb="` + verb + `"}`
		out[ownSeries+"_count"+labels], out[ownSeries+"_sum"+labels] = times, seconds[phase]
	}
	return out
}

// The dispatcher takes no time here but what the API server lets it wait, and a run takes minutes.
func TestTheOwnShareOfEveryRunIsMeasuredOnceByPhase(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: time.Minute, Does: fakecluster.Works}
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Hour, w.IsBound("data"))
		w.Advance(time.Minute)
		want := ownPhases(map[string]float64{}, "provision", 1, nil)
		w.mustCount([]string{ownSeries}, want)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Hour, w.Empty)
		w.mustCount([]string{ownSeries}, ownPhases(want, "delete", 1, nil))
	})
}

func TestASlowAPIServerShowsInTheOwnShareOfItsPhase(t *testing.T) {
	slow := map[string]float64{"launch": 1, "confirm": 2, "record": 4, "release": 2}
	inWorld(t, func(w *world) {
		w.BeforeJob = func() { time.Sleep(time.Second) }
		w.BeforePatch = func(resource string) {
			time.Sleep(map[string]time.Duration{"pods": 2 * time.Second, "jobs": 4 * time.Second}[resource])
		}
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Hour, w.IsBound("data"))
		w.Advance(time.Minute)
		w.mustCount([]string{ownSeries}, ownPhases(map[string]float64{}, "provision", 1, slow))
	})
}

// Of three claims two wait for a slot, and the second is tried three times.
func TestSlotsAndPausesAreNotInTheOwnShare(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		failures := 2
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: time.Minute, Does: func(r *fakecluster.Run) fakecluster.Exit {
			if r.Request.Name == "second" && failures > 0 {
				failures--
				return fakecluster.Exit{Code: 75}
			}
			return fakecluster.Works(r)
		}}
		w.Start()
		for _, name := range []string{"first", "second", "third"} {
			w.CreateClaim(name)
		}
		w.Until("all are bound", time.Hour, w.AllBound)
		w.Advance(time.Minute)
		w.mustCount([]string{ownSeries}, ownPhases(map[string]float64{}, "provision", 5, nil))
	})
}

func TestABatchHasOneOwnShare(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		for _, name := range []string{"first", "second", "third"} {
			w.CreateClaim(name)
		}
		w.Until("all are bound", time.Hour, w.AllBound)
		w.Advance(time.Minute)
		w.mustCount([]string{ownSeries}, ownPhases(map[string]float64{}, string(contract.Provision), float64(len(w.CreatedJobs(""))), nil))
	})
}

// One worker creates each Job in 1 s. After half of the first comes the second claim, and at its end the first one's pod: the worker has time for
// these one after the other. Both runs end while it creates the third Job, 0.6 s before it has.
func TestTheOwnShareBeginsWhenTheCacheShowsTheChange(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.Workers = 1
		w.BeforeJob = func() { time.Sleep(time.Second) }
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("first")
		w.Advance(500 * time.Millisecond)
		w.CreateClaim("second")
		w.Advance(2 * time.Second)
		w.CreateClaim("third")
		w.Until("all are bound", time.Hour, w.AllBound)
		w.Advance(time.Minute)
		w.mustCount([]string{ownSeries}, ownPhases(map[string]float64{}, "provision", 3, map[string]float64{
			"launch": 1 + 1.5 + 1, "confirm": 1, "record": 0.6 + 0.6,
		}))
	})
}

// For a minute the API server accepts no Job. What a policy refuses waits for others. A request that has failed is the dispatcher's own to repeat.
func TestARefusedLaunchIsNotInTheOwnShareAndAFailedOneIs(t *testing.T) {
	for name, test := range map[string]struct {
		refusal error
		own     func(launch float64) bool
	}{
		"refused": {apierrors.NewForbidden(batchv1.Resource("jobs"), "", nil), func(launch float64) bool { return launch == 0 }},
		"failed":  {apierrors.NewTooManyRequests("busy", 1), func(launch float64) bool { return launch >= 60 }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				accepts := time.Now().Add(time.Minute)
				w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
					if _, isJob := obj.(*batchv1.Job); isJob && time.Now().Before(accepts) {
						return test.refusal
					}
					return nil
				})
				w.SetUpGold(fakecluster.Works)
				w.Start()
				w.CreateClaim("data")
				w.Until("the claim is bound", time.Hour, w.IsBound("data"))
				if launch := scrape(w.T, w.metrics)[ownSeries+`_sum{phase="launch",verb="provision"}`]; !test.own(launch) {
					w.T.Errorf("the launch took %v s of the dispatcher's own", launch)
				}
			})
		})
	}
}
