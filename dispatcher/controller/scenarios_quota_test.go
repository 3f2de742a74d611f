package controller_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A quota counts the larger of what a claim requests and of what is allocated for it. The volume had
// 100Gi, and the quota counted 2Gi.
func TestALoweredRequestHidesNoCapacityFromAQuota(t *testing.T) {
	for name, c := range map[string]struct {
		requests []string
		waitsFor []func(*world) func() bool
		has      string // in the end, the volume, and what the quota counts
	}{
		"lowered once": {[]string{"100Gi"}, []func(*world) func() bool{pends}, "100Gi"},
		"lowered after a larger size was refused": {[]string{"100Gi", "101Gi"}, []func(*world) func() bool{pends, isRefused}, "100Gi"},
		"only a larger size was refused":          {[]string{"2Gi", "101Gi"}, []func(*world) func() bool{pends, isRefused}, "2Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				most := resource.MustParse("100Gi")
				w.SetUpExpandableGold(func(r *fakecluster.Run) fakecluster.Exit {
					if r.Verb == contract.Expand && r.Request.Size > most.Value() {
						return fakecluster.Exit{Code: 65}
					}
					return making(asISCSI)(r)
				})
				w.Start()
				claim := w.provisioned("data")
				for i, size := range c.requests {
					w.requestSize(size)
					w.Until("its request is answered", time.Minute, c.waitsFor[i](w))
				}
				w.requestSize("2Gi") // the API server allows it: it is more than status.capacity
				w.Advance(time.Minute)
				fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) { fakecluster.Annotate(pv, contract.AnnFileSystem, c.has) })
				w.Advance(time.Minute)
				if s := w.Claim("data").Status; s.Capacity.Storage().String() != c.has || s.AllocatedResources.Storage().String() != c.has {
					t.Errorf("the volume has %s, and a quota counts %s, want %s", s.Capacity.Storage(), s.AllocatedResources.Storage(), c.has)
				}
			})
		})
	}
}

func pends(w *world) func() bool { return w.showsResize(nodePends, fsPends) }

func isRefused(w *world) func() bool { return w.showsResize(infeasible, refused) }

// counted returns what a quota counts for the claim data (pvcEvaluator.Usage in Kubernetes'
// pkg/quota/v1/evaluator/core/persistent_volume_claims.go).
func (w *world) counted() int64 {
	claim := w.Claim("data")
	return max(claim.Spec.Resources.Requests.Storage().Value(), claim.Status.AllocatedResources.Storage().Value())
}

// The storage grows the volume and ends with 75, since a node is logged in. A larger size was then
// refused, which said nothing of that run, and the claim was bound with 2Gi to a volume of 100Gi.
func TestALoweredRequestHidesNothingThatAFailedExpandHasGrown(t *testing.T) {
	meanwhile := map[string]func(*world){
		"": func(*world) {},
		", another dispatcher leads": func(w *world) {
			w.Stop()
			w.Start()
		},
		", the Jobs no longer exist": func(w *world) {
			for _, job := range fakecluster.List[*batchv1.Job](w) {
				if job.Labels[jobs.LabelVerb] == string(contract.Expand) {
					fakecluster.Delete(w, fakecluster.Admin, job)
				}
			}
		},
	}
	for name, happens := range meanwhile {
		for _, refusal := range []int32{65, 73} {
			t.Run(fmt.Sprint(refusal, name), func(t *testing.T) { hidesNothing(t, refusal, happens) })
		}
	}
}

func hidesNothing(t *testing.T, refusal int32, meanwhile func(*world)) {
	t.Helper()
	inWorld(t, func(w *world) {
		most, has, inUse := resource.MustParse("100Gi"), int64(0), true
		w.SetUpExpandableGold(func(r *fakecluster.Run) fakecluster.Exit {
			switch {
			case r.Verb != contract.Expand:
			case r.Request.Size > most.Value():
				return fakecluster.Exit{Code: refusal}
			default:
				if has = max(has, r.Request.Size); inUse {
					return fakecluster.Exit{Code: 75}
				}
			}
			return fakecluster.Works(r)
		})
		w.Start()
		w.provisioned("data")
		for _, size := range []string{"100Gi", "101Gi", "2Gi"} {
			w.requestSize(size)
			for range 20 {
				w.Advance(30 * time.Second)
				if w.counted() < has {
					w.T.Fatalf("the claim requests %s, a quota counts %d bytes, and the volume has %d", size, w.counted(), has)
				}
			}
			meanwhile(w)
		}
		inUse = false
		w.Until("the claim has what the volume has", 10*time.Minute, w.hasSize("100Gi"))
		if w.counted() != has {
			t.Errorf("a quota counts %d bytes, and the volume has %d", w.counted(), has)
		}
	})
}

// A size that was refused is forgotten, also if a run for it has failed before in another way: the
// user is not left with it.
func TestAUserRecoversFromASizeThatIsRefusedAfterAFailure(t *testing.T) {
	for _, refusal := range []int32{65, 73} {
		t.Run(fmt.Sprint(refusal), func(t *testing.T) {
			inWorld(t, func(w *world) {
				refuse := fakecluster.Fails(refusal, "")
				w.SetUpExpandableGold(expanding(fakecluster.Fails(75, ""), func(r *fakecluster.Run) fakecluster.Exit {
					w.requestSize("200Gi") // which waits until 100Gi is reached or refused
					return refuse(r)
				}, refuse))
				w.Start()
				w.provisioned("data")
				w.requestSize("100Gi")
				w.Until("both were refused", 10*time.Minute, func() bool { return isRefused(w)() && len(w.RunsOf(contract.Expand)) == 3 })
				w.requestSize("2Gi")
				w.Until("the claim has what it requests now", time.Minute, w.hasSize("2Gi"))
				if w.counted() != 2<<30 {
					t.Errorf("a quota counts %d bytes", w.counted())
				}
			})
		})
	}
}
