package cluster_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func writtenJob(version string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "storage", Name: "provision-a-1", UID: "job", ResourceVersion: version, Annotations: map[string]string{jobs.AnnUIDs: "a,b"},
	}}
}

// writtenTo returns a Written over caches that show these objects.
func writtenTo(t *testing.T, shown ...metav1.Object) (*cluster.Written, *clocktesting.FakeClock) {
	t.Helper()
	caches, err := cluster.NewStatic(fake.NewClientset(), []string{"storage"}, shown...)
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC))
	return cluster.NewWritten(caches, clock), clock
}

func deletedNow(job *batchv1.Job, finalizers ...string) *batchv1.Job {
	job.DeletionTimestamp, job.Finalizers = new(metav1.NewTime(time.Now())), finalizers
	return job
}

func TestAWriteIsWaitedForUntilTheCachesShowIt(t *testing.T) {
	another := writtenJob("7")
	another.UID = "another"
	for name, tt := range map[string]struct {
		shown []metav1.Object
		note  func(*cluster.Written)
		waits bool
	}{
		"nothing was written":             {nil, func(*cluster.Written) {}, false},
		"an older version is shown":       {[]metav1.Object{writtenJob("6")}, func(w *cluster.Written) { w.Wrote(writtenJob("7")) }, true},
		"that version is shown":           {[]metav1.Object{writtenJob("7")}, func(w *cluster.Written) { w.Wrote(writtenJob("7")) }, false},
		"a later one is shown":            {[]metav1.Object{writtenJob("12")}, func(w *cluster.Written) { w.Wrote(writtenJob("7")) }, false},
		"deleted, and shown as it was":    {[]metav1.Object{writtenJob("6")}, func(w *cluster.Written) { w.Deleted(writtenJob("6")) }, true},
		"deleted, and shown terminating":  {[]metav1.Object{deletedNow(writtenJob("7"), "x")}, func(w *cluster.Written) { w.Deleted(writtenJob("6")) }, false},
		"deleted, and not shown":          {nil, func(w *cluster.Written) { w.Deleted(writtenJob("6")) }, false},
		"deleted, another one is shown":   {[]metav1.Object{another}, func(w *cluster.Written) { w.Deleted(writtenJob("6")) }, false},
		"its last finalizer was removed":  {[]metav1.Object{deletedNow(writtenJob("6"), "x")}, func(w *cluster.Written) { w.Wrote(deletedNow(writtenJob("6"))) }, true},
		"it exists, and is not shown":     {nil, func(w *cluster.Written) { w.Exists(writtenJob("")) }, true},
		"it exists, and is shown":         {[]metav1.Object{writtenJob("6")}, func(w *cluster.Written) { w.Exists(writtenJob("")) }, false},
		"the second of two is not shown":  {[]metav1.Object{writtenJob("6")}, func(w *cluster.Written) { w.Wrote(writtenJob("6")); w.Wrote(writtenJob("7")) }, true},
		"a version that says nothing":     {[]metav1.Object{writtenJob("6")}, func(w *cluster.Written) { w.Wrote(writtenJob("x")) }, false},
		"an object that no cache watches": {nil, func(w *cluster.Written) { w.Wrote(&metav1.PartialObjectMetadata{}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := writtenTo(t, tt.shown...)
			tt.note(w)
			for _, uid := range []types.UID{"a", "b", "other"} {
				if at := w.Since(uid); at.IsZero() == (tt.waits && uid != "other") {
					t.Errorf("%s waits since %s", uid, at)
				}
			}
		})
	}
}

// Whoever waits for it that long reads live objects.
func TestAJobThatExistsAndIsNotShownInTimeIsOverdue(t *testing.T) {
	w, clock := writtenTo(t)
	if w.Exists(writtenJob("")) {
		t.Error("it is overdue at once")
	}
	clock.Step(cluster.BehindFor)
	if !w.Exists(writtenJob("")) {
		t.Error("it is not overdue")
	}
}

func TestWhatIsNeverAskedForIsForgotten(t *testing.T) {
	w, clock := writtenTo(t)
	w.Wrote(writtenJob("7"))
	clock.Step(3 * cluster.BehindFor)
	other := writtenJob("8")
	other.Annotations = map[string]string{jobs.AnnUIDs: "c"}
	w.Wrote(other)
	if at := w.Since("a"); !at.IsZero() {
		t.Errorf("it is kept since %s", at)
	}
}
