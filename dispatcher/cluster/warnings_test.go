package cluster_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

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
	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
)

// 455 events of 1.4 MB, which a kubelet had created about a pod, once ended all dispatchers.
func TestOnlyACauseIsLostByLargeEvents(t *testing.T) {
	const large = 1 << 20
	var asked atomic.Int64
	var written atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if limit := r.URL.Query().Get("limit"); limit != "20" {
			t.Errorf("asked for %q events", limit)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","items":[`)
		for i := range 20 {
			n, err := io.WriteString(w, strings.Repeat(",", min(i, 1))+`{"message":"`+strings.Repeat("x", large)+`"}`)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
		fmt.Fprint(w, `]}`)
	}))
	cfg := &rest.Config{Host: server.URL}
	answerlimit.Wrap(cfg)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	caches, err := cluster.NewStatic(client, []string{"ns"})
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slow"}}
	if got := caches.WarningAbout(t.Context(), job, "uid"); got != nil {
		t.Errorf("%d bytes are the cause", len(got.Note))
	}
	caches.KeepWarning(job, &runs.Warning{Reason: "kept"})
	if got := caches.WarningAbout(t.Context(), job, "uid"); got == nil || got.Reason != "kept" {
		t.Errorf("the warning is %v, not the one that was kept", got)
	}
	server.Close() // it waits for what it writes
	if n := asked.Load(); n != 2 || written.Load() >= n*20*large {
		t.Errorf("%d bytes of %d answers were read", written.Load(), n)
	}
}

// Of each of a thousand Jobs a warning is kept for an hour.
func TestAWarningIsKeptWithTheBeginningOfItsTexts(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	client := fake.NewClientset(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "large"}, Reason: long, Message: long})
	caches, err := cluster.NewStatic(client, []string{"ns"})
	if err != nil {
		t.Fatal(err)
	}
	got := caches.WarningAbout(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slow"}}, "uid")
	if got == nil || len(got.Reason) > 2<<10 || len(got.Note) > 2<<10 || len(got.Note) < 1<<10 || !strings.HasPrefix(long, strings.TrimSuffix(got.Note, "…")) {
		t.Errorf("the warning is %v", got)
	}
}

// Whoever may create pods in a namespace gives them the label that names a Job, and 1 MiB each.
func TestOnlyPodsOfRunsAreReadLive(t *testing.T) {
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "foreign", Labels: map[string]string{batchv1.JobNameLabel: "run", batchv1.ControllerUidLabel: "uid"}}}
	caches, err := cluster.New(fake.NewClientset(foreign), contract.ProvisionerName, []string{"ns"}, nil, cluster.Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "uid"}}
	pods, err := caches.Live(types.NamespacedName{}).Pods(t.Context(), job)
	if err != nil || len(pods) != 0 {
		t.Errorf("%d pods, %v", len(pods), err)
	}
}
