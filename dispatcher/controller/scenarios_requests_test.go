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

// cost is what the dispatcher asks of the API server, and tells, from the creation of claims to the
// end of their volumes.
type cost struct {
	policy            corev1.PersistentVolumeReclaimPolicy
	batch, claims     int // claims come while the Job of another runs
	lingers           time.Duration
	provision, remove map[string]int
}

var costs = map[string]cost{
	"one claim a Job": {
		batch: 1, claims: 8,
		provision: map[string]int{"create jobs": 9, "patch pods": 18, "patch jobs": 18, "patch persistentvolumeclaims": 9, "event": 9},
		remove:    map[string]int{"create jobs": 9, "patch pods": 18, "patch jobs": 18, "delete persistentvolumes": 9, "patch persistentvolumes": 9, "event": 9},
	},
	"one claim a Job, whose pod ends after its container": {
		batch: 1, claims: 8, lingers: 2 * time.Second,
		provision: map[string]int{"create jobs": 9, "patch pods": 18, "patch jobs": 18, "patch persistentvolumeclaims": 9, "event": 9},
		remove:    map[string]int{"create jobs": 9, "patch pods": 18, "patch jobs": 18, "delete persistentvolumes": 9, "patch persistentvolumes": 9, "event": 9},
	},
	"one claim a Job, retained": {
		batch: 1, claims: 8, policy: corev1.PersistentVolumeReclaimRetain,
		provision: map[string]int{
			"create jobs": 9, "patch pods": 18, "patch jobs": 18, "patch persistentvolumeclaims": 9, "patch persistentvolumes": 9, "event": 9,
		},
	},
	"one claim, and then 64 claims a Job": {
		batch: 64, claims: 64,
		provision: map[string]int{"create jobs": 2, "patch pods": 4, "patch jobs": 4, "patch persistentvolumeclaims": 65, "event": 1},
		remove:    map[string]int{"create jobs": 2, "patch pods": 4, "patch jobs": 4, "delete persistentvolumes": 65, "patch persistentvolumes": 65, "event": 1},
	},
}

// What the dispatcher asks of the API server, and tells, for claims that are served at the first
// try: exactly so much. A Job costs four writes: its creation, the gate, the outcomes, the pod's
// finalizer. Each claim costs one more, its result, and each PV that is retained one, its
// finalizer. To delete a volume are two more: its PV is deleted before, and its finalizer is
// removed after. It is the same whenever the PV controller asks for the volume, and nothing is
// written on a claim before it is bound.
func TestRequestsAndEventsPerClaimAreExact(t *testing.T) {
	for mode, prepare := range map[string]func(*world){
		"asked for before":             func(w *world) { w.options.AheadOfBinder = false },
		"ahead, and asked for at once": func(*world) {},
		"ahead, and asked for late":    func(w *world) { w.AnnotatesAfter = 5 * time.Second },
		"ahead, and never asked for":   func(w *world) { w.BinderLooksAfter = time.Minute },
	} {
		for name, l := range costs {
			t.Run(name+", "+mode, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 10 * time.Second, Lingers: l.lingers}
					w.CreateClass("gold", cmp.Or(l.policy, corev1.PersistentVolumeReclaimDelete))
					w.CreateServiceAccount("true")
					w.CreateConfig("gold", "gold", "max-parallel", "1", "batch-size", fmt.Sprint(l.batch))
					prepare(w)
					w.Start()
					w.CreateClaim("before") // its config revision is stored
					w.Until("it is bound", 3*time.Minute, func() bool { return w.AllBound() && len(w.HeldRecords()) == 0 })
					w.Advance(time.Minute)
					w.mustCost(l)
					w.mustWriteOnBoundClaimsOnly()
				})
			})
		}
	}
}

func (w *world) mustCost(l cost) {
	w.T.Helper()
	each := func(do func(name string)) {
		before := len(w.CreatedJobs(""))
		do("data-0")
		w.Until("the first has a Job", time.Minute, func() bool { return len(w.CreatedJobs("")) == before+1 })
		for i := range l.claims {
			do(fmt.Sprintf("data-%d", i+1))
		}
	}
	asked := w.asked(func() {
		each(func(name string) { w.CreateClaim(name) })
		w.Until("all are bound", 5*time.Minute, func() bool { return w.AllBound() && len(w.HeldRecords()) == 0 })
	})
	w.mustAsk("provision", asked, l.provision)
	if l.remove == nil {
		return
	}
	asked = w.asked(func() {
		each(func(name string) { fakecluster.Delete(w, fakecluster.User, w.Claim(name)) })
		w.Until("only the one from before is left", 5*time.Minute, func() bool { return len(w.Storage) == 1 && len(fakecluster.List[*corev1.PersistentVolume](w)) == 1 })
	})
	w.mustAsk("delete", asked, l.remove)
}

// mustWriteOnBoundClaimsOnly fails the test if a dispatcher has written on a claim that was not
// bound.
func (w *world) mustWriteOnBoundClaimsOnly() {
	w.T.Helper()
	for _, change := range w.Server.History() {
		if claim, is := change.Now.(*corev1.PersistentVolumeClaim); is && change.By == fakecluster.DispatcherName && claim.Spec.VolumeName == "" {
			w.T.Errorf("the dispatcher has written on the claim %s before it was bound", claim.Name)
		}
	}
}

// asked returns what the dispatcher asks of the API server, by verb and resource, and how many
// events it emits, until nothing more comes. What it asks for in vain, which changes nothing, is
// "refused".
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

// The event of a failure says when the next attempt is, so its launch needs no event.
func TestALaterAttemptIsReportedOnlyIfItTakesLong(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Fails(75, "claim: busy"))
		w.Start()
		w.CreateClaim("data")
		w.Until("two attempts failed", time.Minute, func() bool { return len(w.Runs) == 2 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 2 * time.Minute}
		w.Advance(29 * time.Second)
		w.MustEmit(onData, "Provisioning", 0)
		w.Advance(10 * time.Second)
		w.MustEmit(onData, "Provisioning", 1, "attempt 3, since ")
		w.Until("it is bound", 10*time.Minute, w.IsBound("data"))
		w.MustEmit(onData, "Provisioning", 1)

		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Fails(75, "claim: busy")}
		w.requestSize("2Gi")
		w.Until("two attempts failed", time.Minute, func() bool { return len(w.RunsOf(contract.Expand)) == 2 })
		w.MustEmit(onData, "Resizing", 1, "to 2Gi", "attempt 1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 2 * time.Minute}
		w.Until("the claim has its size", 10*time.Minute, w.hasSize("2Gi"))
		w.MustEmit(onData, "Resizing", 2)
		if last := w.Events.About(onData, "Resizing")[1].Note; !strings.Contains(last, "attempt 3, since ") {
			w.T.Errorf("the last event says %q", last)
		}
	})
}
