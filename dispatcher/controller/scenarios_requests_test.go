package controller_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// What the dispatcher asks of the API server, and tells, for claims that are served at the first try: exactly so much. A Job costs four writes: its
// creation, the gate, the outcomes, the pod's finalizer. Each claim costs one more, its result, and each PV that is retained one, its finalizer. To
// delete a volume are two more: its PV is deleted before, and its finalizer is removed after.
func TestRequestsAndEventsPerClaimAreExact(t *testing.T) {
	for name, test := range map[string]struct {
		policy            corev1.PersistentVolumeReclaimPolicy
		batch             int
		provision, remove map[string]int
	}{
		"one claim a Job": {
			batch:     1,
			provision: map[string]int{"create jobs": 9, "patch pods": 18, "patch jobs": 9, "patch persistentvolumeclaims": 9, "event": 9},
			remove:    map[string]int{"create jobs": 9, "patch pods": 18, "patch jobs": 9, "delete persistentvolumes": 9, "patch persistentvolumes": 9, "event": 9},
		},
		"one claim a Job, retained": {
			batch: 1, policy: corev1.PersistentVolumeReclaimRetain,
			provision: map[string]int{
				"create jobs": 9, "patch pods": 18, "patch jobs": 9, "patch persistentvolumeclaims": 9, "patch persistentvolumes": 9, "event": 9,
			},
		},
		"one claim, and then eight claims a Job": {
			batch:     8,
			provision: map[string]int{"create jobs": 2, "patch pods": 4, "patch jobs": 2, "patch persistentvolumeclaims": 9, "event": 1},
			remove:    map[string]int{"create jobs": 2, "patch pods": 4, "patch jobs": 2, "delete persistentvolumes": 9, "patch persistentvolumes": 9, "event": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 10 * time.Second}
				w.CreateClass("gold", cmp.Or(test.policy, corev1.PersistentVolumeReclaimDelete))
				w.CreateServiceAccount("true")
				w.CreateConfig("gold", "gold", "max-parallel", "1", "batch-size", fmt.Sprint(test.batch))
				w.Start()
				w.provisioned("before") // its config revision is stored
				w.Advance(time.Minute)

				asked := w.asked(func() {
					w.CreateClaim("data-0")
					w.Until("the first has a Job", time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 })
					for i := range 8 {
						w.CreateClaim(fmt.Sprintf("data-%d", i+1))
					}
					w.Until("all are bound", 5*time.Minute, func() bool { return w.AllBound() && len(w.HeldRecords()) == 0 })
				})
				w.mustAsk("provision", asked, test.provision)
				if test.remove == nil {
					return
				}
				asked = w.asked(func() {
					before := len(w.CreatedJobs(""))
					fakecluster.Delete(w, fakecluster.User, w.Claim("data-0"))
					w.Until("the first has a Job", time.Minute, func() bool { return len(w.CreatedJobs("")) == before+1 })
					for i := range 8 {
						fakecluster.Delete(w, fakecluster.User, w.Claim(fmt.Sprintf("data-%d", i+1)))
					}
					w.Until("only the one from before is left", 5*time.Minute, func() bool { return len(w.Storage) == 1 && len(fakecluster.List[*corev1.PersistentVolume](w)) == 1 })
				})
				w.mustAsk("delete", asked, test.remove)
			})
		})
	}
}

// asked returns what the dispatcher asks of the API server, by verb and resource, and how many events it emits, until nothing more comes. What it asks
// for in vain, which changes nothing, is "refused".
func (w *world) asked(do func()) map[string]int {
	requests, events, written := len(w.Dispatcher().Requests()), len(w.Events.About("", "")), w.writtenByDispatcher()
	do()
	w.Advance(3 * time.Minute)
	out, writes := map[string]int{}, 0
	for _, r := range w.Dispatcher().Requests()[requests:] {
		out[r.GetVerb()+" "+r.GetResource().Resource]++
		if !isRead(r) {
			writes++
		}
	}
	out["event"] = len(w.Events.About("", "")) - events
	if refused := writes - (w.writtenByDispatcher() - written); refused != 0 {
		out["refused"] = refused
	}
	return out
}

func isRead(r clienttesting.Action) bool {
	return slices.Contains([]string{"get", "list", "watch"}, r.GetVerb())
}

// writtenByDispatcher returns how many writes of dispatchers have changed something.
func (w *world) writtenByDispatcher() int {
	return len(slices.DeleteFunc(slices.Clone(w.Server.History()), func(c fakecluster.Change) bool { return c.By != fakecluster.DispatcherName }))
}

func (w *world) mustAsk(what string, got, want map[string]int) {
	w.T.Helper()
	if !maps.Equal(got, want) {
		var told []string
		for _, e := range w.Events.About("", "") {
			told = append(told, e.About+" "+e.Reason)
		}
		w.T.Errorf("to %s it asked %v, want %v; events: %s", what, got, want, strings.Join(told, ", "))
	}
}

// A run that takes long is reported after a while, once, so that its user knows where to look.
func TestARunThatTakesLongIsReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("quick")
		w.Until("it is bound", time.Minute, w.IsBound("quick"))
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		claim := w.CreateClaim("data")
		w.Advance(29 * time.Second)
		w.MustEmit(onData, "Provisioning", 0)
		w.Advance(2 * time.Second)
		w.MustEmit(onData, "Provisioning", 1, "Job "+fakecluster.ConfigNamespace+"/provision-"+string(claim.UID)+"-1, attempt 1, since ")
		w.Until("it is bound", 10*time.Minute, w.IsBound("data"))
		w.Advance(time.Second)
		w.MustEmit(onData, "Provisioning", 1)
		w.MustEmit(onData, "ProvisioningSucceeded", 1)
		w.MustEmit(aboutClaim("quick"), "Provisioning", 0)

		pv := "PersistentVolume/" + contract.PVName(string(claim.UID))
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Minute)
		w.MustEmit(pv, "Deleting", 1, "Job "+fakecluster.ConfigNamespace+"/delete-"+string(claim.UID)+"-1, attempt 1, since ")
		w.Until("its volume has been deleted", 10*time.Minute, func() bool { return len(w.Storage) == 1 })
	})
}
