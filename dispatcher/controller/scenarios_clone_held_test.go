package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/grants"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// quotaGate is the gate of another controller, as of one that admits pods by a quota.
const quotaGate = "example.com/quota"

// slowGrants returns the grants of an API server that needs a moment for each list: the namespace host
// lets claims of the namespace default be made from its own.
func slowGrants(takes time.Duration) *grants.Grants {
	api := schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "referencegrants"}
	grant := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant", "metadata": map[string]any{"name": "g", "namespace": "host"},
		"spec": map[string]any{
			"from": []any{map[string]any{"group": "", "kind": "PersistentVolumeClaim", "namespace": fakecluster.ClaimNamespace}},
			"to":   []any{map[string]any{"group": "", "kind": "PersistentVolumeClaim"}},
		},
	}}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{api: "ReferenceGrantList"}, grant)
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		time.Sleep(takes)
		return false, nil, nil
	})
	return grants.New(client, clock.RealClock{})
}

// admitOld removes the other controller's gate from pods of an age.
func (w *world) admitOld(age time.Duration) {
	for _, pod := range fakecluster.List[*corev1.Pod](w) {
		if pod.DeletionTimestamp == nil && time.Since(pod.CreationTimestamp.Time) >= age {
			fakecluster.Update(w, "quota", pod, func(p *corev1.Pod) {
				p.Spec.SchedulingGates = slices.DeleteFunc(p.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == quotaGate })
			})
		}
	}
}

// What is known of a namespace's grants is forgotten after a minute, and asked for again. For that
// moment the source of a clone is not refused, and a run that waits at its gate is not cancelled: one
// that another controller lets start after three minutes would never start.
func TestAGatedCloneIsNotCancelledWhileTheConsentIsReadAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.Grants = slowGrants(200 * time.Millisecond)
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim", "pod-template", "spec: {schedulingGates: [{name: "+quotaGate+"}]}")
		w.startWithNodes()
		source := w.CreateClaim("source", inNamespace("host"))
		for range 6 {
			w.Advance(5 * time.Second)
			w.admitOld(0)
		}
		w.Until("the source is bound", time.Minute, w.AllBound)
		w.CreateClaim("clone", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"k8s.io/CloneRequest": source.Namespace + "/" + source.Name}
		})
		for range 60 {
			w.Advance(10 * time.Second)
			w.admitOld(3 * time.Minute)
		}
		if n := len(w.CreatedJobs("")); n != 2 || !w.IsBound("clone")() {
			t.Errorf("bound: %t, after %d Jobs of the source and the clone", w.IsBound("clone")(), n)
		}
	})
}

// A standby whose watch of claims was behind, or also that of PVs, took the lead while a source was being
// deleted. The PV said that its claim did not exist, and the clone was made of half of the files.
func TestACloneIsNotStartedWhileItsSourceIsBeingDeleted(t *testing.T) {
	for _, behind := range [][]string{{"persistentvolumeclaims"}, {"persistentvolumeclaims", "persistentvolumes"}} {
		t.Run(strings.Join(behind, " and "), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
				w.CreateNode("node-1")
				first := w.Start()
				w.CreateClaim("a")
				w.Until("a is bound", time.Minute, w.IsBound("a"))
				standby := w.Start()
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Fails(73, ""))}
				w.CreateClaim("b", copyOf("a"))
				w.Until("b was tried", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 2 })
				w.Advance(10 * time.Second)
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 9 * time.Minute}
				for _, watch := range behind {
					standby.DelayWatches(watch, true)
				}
				fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
				w.Until("the source is being deleted", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
				w.End(first)
				w.Advance(8 * time.Minute)
				if n := len(w.RunningPods()); n > 1 {
					t.Error("a clone is at work while its source is deleted")
				}
				w.Advance(20 * time.Minute)
				if n := len(w.RunsOf(contract.Provision)); n != 2 {
					t.Error("the source was cloned after it was deleted")
				}
			})
		})
	}
}
