package writes

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func newLog() *Log { return New(clocktesting.NewFakePassiveClock(now)) }

func jobOf(version string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "storage", Name: "provision-1-1", UID: "job", ResourceVersion: version, Annotations: map[string]string{jobs.AnnUIDs: "claim"},
	}}
}

func observed(found ...*batchv1.Job) *observe.Observation {
	o := &observe.Observation{UID: "claim", Jobs: map[string]*batchv1.Job{}}
	for _, job := range found {
		o.Jobs[job.Name] = job
	}
	return o
}

// One worker has read the caches before the write was shown, and asks after another one that has read it since.
func TestASlowObservationLacksAWriteThatAnotherHasShown(t *testing.T) {
	w := newLog()
	w.Wrote(jobOf("7"))
	slow, mark := observed(jobOf("6")), w.Mark()
	if at := w.Unseen(observed(jobOf("7")), w.Mark()); !at.IsZero() {
		t.Errorf("the write is shown, and was unseen at %s", at)
	}
	if w.Unseen(slow, mark).IsZero() {
		t.Error("an older Job counts as the one that was written")
	}
}

func TestASlowObservationLacksAJobThatAnotherHasShown(t *testing.T) {
	w := newLog()
	w.CreatedJob(jobOf(""))
	slow, mark := observed(), w.Mark()
	if at := w.Unseen(observed(jobOf("1")), w.Mark()); !at.IsZero() {
		t.Errorf("the Job is shown, and was unseen at %s", at)
	}
	if w.Unseen(slow, mark).IsZero() {
		t.Error("an observation without the Job counts as one that shows it")
	}
}

// A Job that was shown and does not exist any more is not waited for, and another one of its name is no late one.
func TestAJobThatWasShownMayGo(t *testing.T) {
	w := newLog()
	w.CreatedJob(jobOf(""))
	w.Unseen(observed(jobOf("1")), w.Mark())
	if at := w.Unseen(observed(), w.Mark()); !at.IsZero() {
		t.Errorf("the Job is waited for since %s", at)
	}
	w.CreatedJob(jobOf(""))
	w.Unseen(observed(jobOf("2")), w.Mark())
	if w.CreatedJob(jobOf("")) {
		t.Error("a Job that the caches have shown is overdue")
	}
}

func TestAJobThatWasNotShownIsOverdue(t *testing.T) {
	w := newLog()
	if w.CreatedJob(jobOf("")) {
		t.Error("the first is overdue")
	}
	if !w.CreatedJob(jobOf("")) {
		t.Error("the second is not overdue")
	}
}
