package controller

import (
	"maps"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// An administrator removes an annotation, as the event about a rival asks. The first claim of a batch waits for the outcomes of all.
func TestAnAnnotationOfOneClaimOfABatch(t *testing.T) {
	t.Parallel()
	rival := jobs.MemberAnnotation("b", jobs.AnnRival)
	noted := map[string]string{jobs.AnnUIDs: "a,b", rival: "pv"}
	for name, test := range map[string]struct {
		change func(map[string]string)
		want   []string
		only   bool
	}{
		"nothing":            {func(map[string]string) {}, nil, true},
		"a claim's, removed": {func(now map[string]string) { delete(now, rival) }, []string{"b"}, true},
		"a claim's, changed": {func(now map[string]string) { now[rival] = "other" }, []string{"b"}, true},
		"a claim's, added":   {func(now map[string]string) { now[jobs.MemberAnnotation("a", jobs.AnnRival)] = "" }, []string{"a"}, true},
		"an outcome, for which the first one waits": {func(now map[string]string) { now[jobs.MemberAnnotation("b", jobs.AnnOutcome)] = "{}" }, []string{"b", "a"}, true},
		"another of the Job":                        {func(now map[string]string) { now["example.com/note"] = "x" }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, now := &batchv1.Job{}, &batchv1.Job{}
			old.Annotations, now.Annotations = noted, maps.Clone(noted)
			test.change(now.Annotations)
			if uids, only := annotatedClaims(old, now); !slices.Equal(uids, test.want) || only != test.only {
				t.Errorf("claims %v, and nothing else: %t", uids, only)
			}
		})
	}
}
