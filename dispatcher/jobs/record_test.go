package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestAChangeOfOneRecordChangesNoOther(t *testing.T) {
	job := fixture.Build(t, batchOf(fixture.Config(t, "Delete", nil), "u1", "u2"))
	job.Finalizers = []string{jobs.FinalizerRecord}
	before := runs.RecordOf(job, "u2")
	until := time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)
	fixture.Record(job, "u1", func(r *jobs.Record) {
		r.Recorded, r.Released = &jobs.Outcome{Verdict: contract.Done, MayRunUntil: until}, true
	})
	one, two := runs.RecordOf(job, "u1"), runs.RecordOf(job, "u2")
	if one.Recorded == nil || one.Held || runs.AllRecorded(job) {
		t.Errorf("the first: %+v", one)
	}
	if diff := cmp.Diff(before, two); diff != "" {
		t.Errorf("the second (-before +after):\n%s", diff)
	}
	want := jobs.Head{Version: 1, Namespaces: []string{"app", "other"}, Unrecorded: 1, Held: 1, MayRunUntil: until}
	want.Scheduling = jobs.Scheduling(config.Config{})
	if diff := cmp.Diff(want, jobs.HeadOf(job)); diff != "" {
		t.Errorf("the head (-want +got):\n%s", diff)
	}
	fixture.Record(job, "u2", func(r *jobs.Record) { r.Recorded = &jobs.Outcome{Verdict: contract.Unlisted} })
	if h := jobs.HeadOf(job); h.Failed != 1 || h.Unrecorded != 0 || !runs.AllRecorded(job) {
		t.Errorf("a batch with a failure has %+v", h)
	}
}

// A text of the claim, or of its image, stands in the record like any other.
func TestTheRecordReadsBackWhatWasWritten(t *testing.T) {
	job := fixture.Build(t, batchOf(fixture.Config(t, "Delete", nil), "u1", "u2"))
	want := jobs.RecordOf(job, "u1")
	text := "a <b> & \"c\"\n{\"uid\":\"u2\",\"released\":true}\u2028"
	want.Recorded, want.Described = &jobs.Outcome{Verdict: contract.TryAgain, Message: text}, text
	want.Returns = jobs.Returns{Count: 3, At: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)}
	fixture.Record(job, "u1", func(r *jobs.Record) { *r = want })
	if diff := cmp.Diff(want, jobs.RecordOf(job, "u1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if jobs.RecordOf(job, "u2").Released {
		t.Error("a text of one claim is read as the record of another")
	}
}

func TestADamagedRecordIsReadAsFarAsPossible(t *testing.T) {
	whole := fixture.Build(t, batchOf(fixture.Config(t, "Delete", nil), "u1", "u2"))
	for name, damage := range map[string]func(string) string{
		"none":         func(string) string { return "" },
		"a line less":  func(text string) string { return text[:strings.LastIndexByte(text, '\n')] },
		"the last cut": func(text string) string { return text[:len(text)-3] },
		"no head":      func(text string) string { return "{" + text[strings.IndexByte(text, '\n'):] },
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			jobs.AnnUIDs: "u1,u2", jobs.AnnRecord: damage(whole.Annotations[jobs.AnnRecord]),
		}}}
		if got := jobs.RecordOf(job, "u2"); got.ClaimUID != "u2" || got.Recorded != nil || got.Released {
			t.Errorf("%s: %+v", name, got)
		}
		fixture.Record(job, "u2", func(r *jobs.Record) { r.Released = true })
		if got := jobs.RecordOf(job, "u2"); !got.Released {
			t.Errorf("%s: after a change %+v", name, got)
		}
		if h := jobs.HeadOf(job); h.Held != 1 || h.Unrecorded != 2 {
			t.Errorf("%s: after a change the head is %+v", name, h)
		}
	}
}

func TestChangedRecordsAreThoseThatDiffer(t *testing.T) {
	old := fixture.Build(t, batchOf(fixture.Config(t, "Delete", nil), "u1", "u2", "u3"))
	now := old.DeepCopy()
	fixture.Record(now, "u3", func(r *jobs.Record) { r.Released = true })
	if diff := cmp.Diff([]string{"u3"}, jobs.ChangedRecords(old, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
