package jobs_test

import (
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Each claim of a batch is counted for itself.
func TestReturnsAreReadBackAsTheyWereAnnounced(t *testing.T) {
	for _, uids := range []string{"u1", "u1,u2"} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{jobs.AnnUIDs: uids}}}
		want := jobs.Returns{Count: 3, At: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)}
		added, err := jobs.Announcement(job, "u1", "42", want)
		if err != nil || added[jobs.AnnRescheduled+"u1"] != "42" {
			t.Fatalf("announced as %v, %v", added, err)
		}
		maps.Copy(job.Annotations, added)
		if got := jobs.ReturnsOf(job, "u1"); got != want {
			t.Errorf("read back %+v, want %+v", got, want)
		}
		if got := jobs.ReturnsOf(job, "u2"); uids == "u1,u2" && got != (jobs.Returns{}) {
			t.Errorf("the other claim of the batch has %+v", got)
		}
	}
}

func TestDamagedReturnsCountAsNone(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{jobs.AnnUIDs: "u1", jobs.AnnReturns: `{"count": 2, "at": "yesterday"}`}}}
	if got := jobs.ReturnsOf(job, "u1"); got != (jobs.Returns{}) {
		t.Errorf("read %+v", got)
	}
}
