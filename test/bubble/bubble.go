// Package bubble runs tests in clusters in memory, in the fake time of testing/synctest.
package bubble

import (
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/invariants"
	"github.com/flex-provisioner/flex-provisioner/test/logsink"
)

// parallel holds which tests run in parallel: a test may say so only once, and may use several
// clusters.
var parallel sync.Map

// New returns a cluster in fake time, with a log that tests can read.
func New(t fakecluster.T, newDispatcher fakecluster.NewDispatcher) *fakecluster.Cluster {
	c := fakecluster.New(t, clock.RealClock{}, synctest.Wait, newDispatcher)
	c.Log = logsink.New()
	return c
}

// Test runs a test in a cluster of its own, in fake time and in parallel with other tests, and
// checks the invariants over all that was written. A goroutine that is left running fails the test.
func Test(t *testing.T, newDispatcher fakecluster.NewDispatcher, test func(*fakecluster.Cluster)) {
	t.Helper()
	if _, said := parallel.LoadOrStore(t, true); !said {
		t.Parallel()
	}
	synctest.Test(t, func(t *testing.T) {
		c := New(t, newDispatcher)
		defer c.Stop()
		test(c)
		invariants.Check(c)
		if t.Failed() {
			t.Log(c.Story())
		}
	})
}
