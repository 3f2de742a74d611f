package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// The Job controller writes events by the core API, the scheduler by events.k8s.io, which leaves
// lastTimestamp empty.
func TestTheNewestWarningIsFoundWhicheverAPIWroteIt(t *testing.T) {
	at := func(minutes int) time.Time { return time.Date(2030, 1, 1, 0, minutes, 0, 0, time.UTC) }
	older := corev1.Event{EventTime: metav1.NewMicroTime(at(1))}
	for name, newest := range map[string]corev1.Event{
		"core":                   {LastTimestamp: metav1.NewTime(at(3))},
		"events.k8s.io":          {EventTime: metav1.NewMicroTime(at(3))},
		"events.k8s.io repeated": {EventTime: metav1.NewMicroTime(at(0)), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(3))}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, all := range [][]corev1.Event{{older, newest}, {newest, older}} {
				client := fake.NewClientset()
				for j, e := range all {
					e.Namespace, e.Name, e.Message = "ns", string(rune('a'+j)), "older"
					if j != i {
						e.Message = "newest"
					}
					if _, err := client.CoreV1().Events("ns").Create(t.Context(), &e, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				caches, err := cluster.New(client, contract.ProvisionerName, []string{"ns"}, nil, cluster.Handlers{})
				if err != nil {
					t.Fatal(err)
				}
				if got := caches.WarningAbout(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}, ""); got == nil || got.Note != "newest" {
					t.Errorf("order %d: %+v", i, got)
				}
			}
		})
	}
}

// client-go refuses to ask for such a name, and an error would be tried again for ever.
func TestWhatNoObjectCanBeCalledDoesNotExist(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	caches, err := cluster.New(client, contract.ProvisionerName, []string{"ns"}, nil, cluster.Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	live := caches.Live(types.NamespacedName{})
	for _, name := range []string{"a/b", "..", "", "100%"} {
		if node, err := live.Node(t.Context(), name); node != nil || err != nil {
			t.Errorf("the node %q: %v, %v", name, node, err)
		}
		if pv, err := live.PV(t.Context(), name); pv != nil || err != nil { // a claim names one by any text
			t.Errorf("the PV %q: %v, %v", name, pv, err)
		}
		for _, at := range []types.NamespacedName{{Namespace: "ns", Name: name}, {Namespace: name, Name: "data"}} {
			if claim, err := live.Claim(t.Context(), "uid", at); claim != nil || err != nil {
				t.Errorf("the claim %q: %v, %v", at, claim, err)
			}
		}
	}
}

// Two hundred Jobs that start slowly must not make a busy API server read all its events again and
// again.
func TestWarningsAreReadTenAtOnceAndThenOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		caches, err := cluster.New(client, contract.ProvisionerName, []string{"ns"}, nil, cluster.Handlers{})
		if err != nil {
			t.Fatal(err)
		}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slow"}}
		caches.KeepWarning(job, &runs.Warning{Reason: "kept"})
		reads := func() int {
			for range 200 {
				if got := caches.WarningAbout(t.Context(), job, ""); got != nil && got.Reason != "kept" {
					t.Errorf("%+v", got)
				}
			}
			return len(client.Actions())
		}
		if n := reads(); n != 10 {
			t.Errorf("%d reads of 200 at once", n)
		}
		time.Sleep(3 * time.Second)
		if n := reads(); n != 13 {
			t.Errorf("%d reads, 3 s later", n)
		}
	})
}
