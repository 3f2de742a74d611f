package runs

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func jobAsking(t *testing.T, uid types.UID, items ...contract.Request) *batchv1.Job {
	t.Helper()
	text, err := contract.Requests{Version: contract.Version, Verb: contract.Delete, Items: items}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	job.UID, job.Spec.Template.Annotations = uid, map[string]string{jobs.AnnRequest: text}
	return job
}

func TestRequestsReadsWhatWasAskedForEachClaim(t *testing.T) {
	r := NewRequests()
	job := jobAsking(t, "job", contract.Request{UID: "a", Namespace: "app", Name: "data"},
		contract.Request{UID: "b", Namespace: "app", Name: "logs", ReclaimPolicy: "Retain", Undo: true})
	want := map[string]Asked{
		"a": {At: types.NamespacedName{Namespace: "app", Name: "data"}},
		"b": {At: types.NamespacedName{Namespace: "app", Name: "logs"}, ReclaimPolicy: "Retain", Undo: true},
	}
	for uid, asked := range want {
		if got, known := r.Of(job, uid); !known || got != asked {
			t.Errorf("%s: %+v %v, want %+v", uid, got, known, asked)
		}
	}
	if got, known := r.Of(job, "c"); known {
		t.Errorf("a claim that the Job does not serve: %+v", got)
	}
}

func TestRequestsFollowsAJobWhoseRequestIsChanged(t *testing.T) {
	r := NewRequests()
	r.Of(jobAsking(t, "job", contract.Request{UID: "a", Name: "data"}), "a")
	if got, _ := r.Of(jobAsking(t, "job", contract.Request{UID: "a", Name: "logs"}), "a"); got.At.Name != "logs" {
		t.Errorf("%+v is of the request before", got)
	}
	damaged := jobAsking(t, "job")
	damaged.Spec.Template.Annotations[jobs.AnnRequest] = "{"
	if got, known := r.Of(damaged, "a"); known {
		t.Errorf("%+v is of the request before", got)
	}
}

func TestRequestsKeepsABoundedNumber(t *testing.T) {
	r := NewRequests()
	for i := range 3 * mostRequests {
		r.Of(jobAsking(t, types.UID(fmt.Sprint("job-", i)), contract.Request{UID: "a"}), "a")
	}
	if n := len(r.byJob); n > mostRequests {
		t.Errorf("the requests of %d Jobs are kept, want at most %d", n, mostRequests)
	}
}
