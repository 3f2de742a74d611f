package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A kubelet that reports each run as running, and never an end, leaves half of the slots to the runs
// of other nodes, and a new leader knows that from the objects. Whatever it writes on its pods, they
// are as overdue as they are.
func TestRunsThatOneNodeNeverEndsLeaveHalfOfTheSlots(t *testing.T) {
	far := metav1.NewTime(time.Now().AddDate(100, 0, 0))
	for name, lies := range map[string]func(*world, *corev1.Pod){
		"it says nothing": func(*world, *corev1.Pod) {},
		"it says that they have just begun": func(w *world, pod *corev1.Pod) {
			fakecluster.Update(w, fakecluster.Kubelet, pod, func(p *corev1.Pod) { p.Status.StartTime = new(far) })
		},
		"it deletes them by force, with such a start": func(w *world, pod *corev1.Pod) {
			fakecluster.Update(w, fakecluster.Kubelet, pod, func(p *corev1.Pod) { p.Status.StartTime = new(far) })
			w.force(pod)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "max-parallel", "4", "timeout", "10m")
				w.Images[fakecluster.GoldImage] = worksLong
				w.Start()
				w.burst("bad", 6)
				w.Until("four are at work", time.Minute, func() bool { return len(w.RunningPods()) == 4 })
				w.Frozen["node-1"] = true
				for _, pod := range w.RunningPods() {
					lies(w, pod)
				}
				w.CreateNode("node-2")
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.burst("app", 3)
				w.Advance(10 * time.Minute)
				w.Advance(10 * time.Minute)
				w.Stop()
				w.Start()
				w.Until("the others are bound", 15*time.Minute, func() bool { return w.IsBound("app-0")() && w.IsBound("app-1")() && w.IsBound("app-2")() })
			})
		})
	}
}

// One slot means one: a run on a node that is silent keeps it, and an event names the node.
func TestAnOverdueRunKeepsTheOnlySlotAndItsNodeIsNamed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runningPod(worksLong)
		w.Frozen["node-1"] = true
		w.CreateClaim("second")
		w.Advance(2 * time.Hour)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs were created", n)
		}
		said := w.Events.About("PersistentVolumeClaim/second", "WaitingForSlot")
		if len(said) == 0 || !strings.Contains(said[len(said)-1].Note, "past its deadline, and the node node-1 has not ended it") {
			w.T.Errorf("the events of the claim that waits: %v", said)
		}
	})
}
