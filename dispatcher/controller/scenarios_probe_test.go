package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// Of the Jobs that cannot start for one reason, one is kept. It finds out when the others would
// start. That does not count as an attempt of theirs.
func TestOfJobsThatCannotStartOneIsKept(t *testing.T) {
	for why, claims := range map[string]int{"ErrImagePull": 100, "CreateContainerConfigError": 30} {
		t.Run(why, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "max-attempts", "1")
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: why}
				w.Start()
				w.burst("app", claims)
				w.Advance(time.Minute)
				jobs := w.unfinished()
				if n := len(w.CreatedJobs("")); len(jobs) != 1 || n != claims {
					w.T.Fatalf("%d Jobs are there of %d, want one of %d", len(jobs), n, claims)
				}
				for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
					if !w.saysOf(claim.Name, "an administrator must ") || !w.saysOf(claim.Name, "of the ConfigMap "+fakecluster.ConfigNamespace+"/gold") {
						w.T.Errorf("%s names no remedy", claim.Name)
					}
					if claim.UID != types.UID(jobs[0].Labels[contract.LabelClaimUID]) && !w.saysOf(claim.Name, "no Job is created for this claim yet. The Job "+jobs[0].Namespace+"/"+jobs[0].Name) {
						w.T.Errorf("%s does not say what it waits for", claim.Name)
					}
				}
				w.Advance(5 * time.Minute)
				if n := len(w.CreatedJobs("")); n != claims {
					w.T.Errorf("%d more Jobs were created while the first could not start", n-claims)
				}
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.Until("all are bound", 2*time.Minute, w.AllBound)
				if most := w.most(); most > 20 {
					w.T.Errorf("%d at a time, want 20 at most", most)
				}
				if n := len(w.CreatedJobs("")); n != 2*claims-1 {
					w.T.Errorf("%d Jobs for %d claims, of which all but one had to wait", n, claims)
				}
			})
		})
	}
}

// saysOf reports whether an event about a claim has these words.
func (w *world) saysOf(claim, words string) bool {
	return slices.ContainsFunc(w.Events.About(aboutClaim(claim), ""), func(e fakecluster.Event) bool { return strings.Contains(e.Note, words) })
}

// What keeps one claim's Job from starting may lie in that claim: the others are launched.
func TestAJobThatCannotStartHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "2")
		w.NoPodFor["data"] = true
		w.Start()
		w.CreateClaim("data")
		w.failCreate()
		w.Advance(time.Minute)
		w.burst("app", 10)
		w.Until("the others are bound", time.Minute, func() bool { return len(w.Storage) == 10 })
		w.NoPodFor["data"] = false
		w.Until("all are bound", time.Minute, w.AllBound)
		if most := w.most(); most != 2 {
			w.T.Errorf("%d at a time, want 2", most)
		}
	})
}

// failCreate emits what the Job controller says about each Job for which it can create no pod.
func (w *world) failCreate() {
	fakecluster.Create(w, fakecluster.KubeControllerManager, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pod", Namespace: fakecluster.ConfigNamespace}, Type: corev1.EventTypeWarning,
		Reason: "FailedCreate", Message: "exceeded quota: pods",
	})
}

// A kubelet says of a pod on its node what the scheduler says of others: that no node fits. The runs on
// other nodes do not believe it, neither those that are at work nor those that were cancelled behind
// one of their own.
func TestWhatOneKubeletSaysHoldsUpNoRunOfOtherNodes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "4", "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "Unschedulable"}
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Minute)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Frozen["node-1"] = true // it goes on saying so
		w.burst("app", 3)
		w.Advance(time.Minute)
		w.CreateNode("node-2")
		w.Until("the others are bound", 2*time.Minute, func() bool { return len(w.Storage) == 3 })
	})
}

// What only an event says, such as a quota, counts as well. A new leader has to look at the event
// again.
func TestOfJobsThatGetNoPodOneIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "5")
		for i := range 30 {
			w.NoPodFor[fmt.Sprint("app-", i)] = true
		}
		w.Start()
		w.burst("app", 30)
		w.failCreate()
		w.Advance(2 * time.Minute)
		w.Advance(3 * time.Minute)
		created := len(w.CreatedJobs(""))
		if n := len(w.unfinished()); n != 1 || created != 30 {
			w.T.Errorf("%d Jobs of %d are there, want one of 30", n, created)
		}
		w.Stop()
		w.Start()
		w.Advance(2 * time.Minute)
		if n := len(w.unfinished()); n != 1 || len(w.CreatedJobs("")) > created+5 {
			w.T.Errorf("after a restart %d Jobs are there, and %d were created", n, len(w.CreatedJobs(""))-created)
		}
		clear(w.NoPodFor)
		w.Until("all are bound", 5*time.Minute, w.AllBound)
		if most := w.most(); most > 5 {
			w.T.Errorf("%d at a time, want 5 at most", most)
		}
	})
}

// A probe ends at its deadline, and another claim's Job is the next. Not all that wait are launched
// for that.
func TestAProbeThatEndsIsFollowedByOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "timeout", "2m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		w.Start()
		w.burst("app", 50)
		w.Advance(time.Minute)
		created := len(w.CreatedJobs(""))
		w.Advance(20 * time.Minute)
		if n := len(w.CreatedJobs("")) - created; n < 5 || n > 30 {
			w.T.Errorf("%d Jobs in 20 minutes, each of which ends after two", n)
		}
		if n := len(w.unfinished()); n > 2 {
			w.T.Errorf("%d Jobs at a time", n)
		}
	})
}

// Jobs that cannot start on several nodes leave a slot to those that can.
func TestJobsThatCannotStartLeaveASlot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Works, []string{"node-1"}, "max-parallel", "3", "run-on", "selected-node")
		w.Cordoned = "bad-"
		for i := range 5 {
			w.CreateNode(fmt.Sprint("bad-", i))
		}
		w.Start()
		for i := range 20 {
			w.CreateClaim(fmt.Sprint("bad-", i), fakecluster.SelectNode(fmt.Sprint("bad-", i%5)))
		}
		w.Until("all but those of the Jobs that are kept are bound", 5*time.Minute, func() bool { return len(w.Storage) == 18 })
		w.Advance(time.Minute)
		if n := len(w.unfinished()); n != 2 {
			w.T.Errorf("%d Jobs that cannot start are kept, want 2", n)
		}
		w.Cordoned = ""
		w.Until("all are bound", time.Minute, w.AllBound)
		if most := w.most(); most != 3 {
			w.T.Errorf("%d at a time, want 3", most)
		}
	})
}

// A user may select any node for a claim, also one that is cordoned. The Jobs that wait there leave
// half of the slots to other namespaces.
func TestJobsOfOneNamespaceThatCannotStartLeaveHalfOfTheSlots(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Works, []string{"node-1"}, "max-parallel", "6", "run-on", "selected-node")
		w.Cordoned = "bad-"
		for i := range 5 {
			w.CreateNode(fmt.Sprint("bad-", i))
		}
		w.Start()
		for i := range 5 {
			w.CreateClaim(fmt.Sprint("bad-", i), fakecluster.SelectNode(fmt.Sprint("bad-", i)))
		}
		w.Until("all but those of the Jobs that are kept are bound", 5*time.Minute, func() bool { return len(w.Storage) == 2 })
		w.Advance(time.Minute)
		if n := len(w.unfinished()); n != 3 {
			w.T.Errorf("%d Jobs that cannot start are kept, want 3", n)
		}
	})
}

// Deleting the claim of the probe, or correcting its config, lets the others go on.
func TestAProbeThatIsCancelledHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.Start()
		first := w.CreateClaim("first")
		w.Until("it has a Job", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		w.burst("app", 5)
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, first)
		w.Until("the next is the probe", time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 && len(w.unfinished()) == 1 })
		w.UpdateConfig("image", newer)
		w.Until("all are bound", time.Minute, w.AllBound)
	})
}
