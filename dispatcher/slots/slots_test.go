package slots

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

func TestAFlowIsForgottenWithItsLastJob(t *testing.T) {
	caches, err := cluster.New(fake.NewClientset(), contract.ProvisionerName, []string{"home"}, nil, cluster.Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	s := New(caches, clocktesting.NewFakeClock(time.Now()), func(ClassKey, time.Duration) {})
	job := func(i, n int) *batchv1.Job {
		job := jobOfNamespace(fmt.Sprint(i), fmt.Sprint("ci-run-", i))
		job.Name, job.CreationTimestamp = fmt.Sprint("job-", i, "-", n), metav1.NewTime(time.Unix(int64(n+1), 0))
		return job
	}
	at := ClassKey{"home", "x"}
	for i := range 100 {
		s.Observe(job(i, 0))
		s.Observe(job(i, 1))
		s.Forget(job(i, 0))
	}
	if n := len(s.load(at, 100).Served); n != 100 {
		t.Errorf("%d flows are known, of 100 that have a Job", n)
	}
	for i := range 100 {
		s.Forget(job(i, 1))
	}
	if n := len(s.load(at, 100).Served); n != 0 {
		t.Errorf("%d flows are known, and no Job exists", n)
	}
}
