package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
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
