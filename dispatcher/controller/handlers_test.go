package controller

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// What is written on a Job about one claim of its batch concerns that claim and the Job at once.
func TestAChangeOfOneRecordOfABatch(t *testing.T) {
	old := &batchv1.Job{}
	old.Namespace, old.Name, old.Annotations = "home", "provision-a-1", map[string]string{jobs.AnnUIDs: "a,b"}
	fixture.Record(old, "b", func(r *jobs.Record) { r.Rival = "pv" })
	note := func(uid, rival string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { fixture.Record(job, uid, func(r *jobs.Record) { r.Rival = rival }) }
	}
	for name, test := range map[string]struct {
		change func(*batchv1.Job)
		claims int
	}{
		"nothing":            {func(*batchv1.Job) {}, 0},
		"a claim's, removed": {note("b", ""), 1},
		"a claim's, changed": {note("b", "other"), 1},
		"a claim's, added":   {note("a", "pv"), 1},
		"another of the Job": {func(job *batchv1.Job) { job.Annotations["example.com/note"] = "x" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := New(fake.NewClientset(), nil, clock.RealClock{}, Options{Dispatcher: config.Dispatcher{Provisioner: "p"}, Namespaces: []string{"home"}})
				if err != nil {
					t.Fatal(err)
				}
				c.leading.Store(true)
				now := old.DeepCopy()
				test.change(now)
				if err := c.caches.Jobs["home"].Add(now); err != nil {
					t.Fatal(err)
				}
				c.jobUpdated(old, now)
				first := c.claims.Queue.Len()
				time.Sleep(time.Second)
				synctest.Wait()
				if later := c.claims.Queue.Len(); first != test.claims || later != 2 || c.runs.Queue.Len() != 1 {
					t.Errorf("%d claims at once, %d later, %d Jobs", first, later, c.runs.Queue.Len())
				}
				if uid := types.UID("a"); test.claims == 1 && name == "a claim's, added" {
					if got, _ := c.claims.Queue.Get(); got != uid {
						t.Errorf("enqueued %s", got)
					}
				}
				c.claims.Queue.ShutDown()
				c.runs.Queue.ShutDown()
				c.classes.Queue.ShutDown()
				c.revisions.ShutDown()
				time.Sleep(time.Second)
			})
		})
	}
}
