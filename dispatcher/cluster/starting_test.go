package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// A Job that cannot start says nothing of one that goes to other nodes, or has another image.
func TestJobsStartAlikeIfTheirRevisionAndNodesAreTheSame(t *testing.T) {
	job := func(name, revision, nodes string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{
			contract.AnnRevision: revision, jobs.AnnRecord: fmt.Sprintf(`{"version":1,"nodes":%q}`, nodes),
		}}}
	}
	finished := job("finished", "ns/gold-1", "a")
	finished.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True"}}
	caches, err := cluster.NewStatic(fake.NewClientset(), []string{"ns"},
		job("alike", "ns/gold-1", "a"), job("other-nodes", "ns/gold-1", "b"), job("other-revision", "ns/gold-2", "a"), job("any-node", "ns/gold-1", ""), finished)
	if err != nil {
		t.Fatal(err)
	}
	for nodes, want := range map[string]string{"a": "alike", "b": "other-nodes", "": "any-node"} {
		var got []string
		for _, job := range caches.StartingLike("ns/gold-1", nodes) {
			got = append(got, job.Name)
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("with the nodes %q start %q, want %q", nodes, got, want)
		}
	}
}
