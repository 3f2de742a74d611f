package controller

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// The first claim of a batch waits for the outcomes of all.
func TestAChangeOfOneRecordOfABatch(t *testing.T) {
	t.Parallel()
	old := &batchv1.Job{}
	old.Annotations = map[string]string{jobs.AnnUIDs: "a,b"}
	fixture.Record(old, "b", func(r *jobs.Record) { r.Rival = "pv" })
	note := func(uid, rival string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { fixture.Record(job, uid, func(r *jobs.Record) { r.Rival = rival }) }
	}
	ends := func(uid string) func(*batchv1.Job) {
		return func(job *batchv1.Job) {
			fixture.Record(job, uid, func(r *jobs.Record) { r.Recorded = &jobs.Outcome{} })
		}
	}
	for name, test := range map[string]struct {
		change func(*batchv1.Job)
		want   []string
		only   bool
	}{
		"nothing":            {func(*batchv1.Job) {}, nil, true},
		"a claim's, removed": {note("b", ""), []string{"b"}, true},
		"a claim's, changed": {note("b", "other"), []string{"b"}, true},
		"a claim's, added":   {note("a", "pv"), []string{"a"}, true},
		"an outcome, for which the first one waits": {ends("b"), []string{"b", "a"}, true},
		"another of the Job":                        {func(job *batchv1.Job) { job.Annotations["example.com/note"] = "x" }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := old.DeepCopy()
			test.change(now)
			if uids, only := recordedClaims(old, now); !slices.Equal(uids, test.want) || only != test.only {
				t.Errorf("claims %v, and nothing else: %t", uids, only)
			}
		})
	}
}
