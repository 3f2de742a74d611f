package fakecluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// T is what a Cluster needs of a test. *testing.T is one.
type T interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Failed() bool
	Context() context.Context
}

// Cluster is a Kubernetes cluster in memory: an API server, kube-controller-manager, a scheduler,
// kubelets that run scripted images, and the storage that these images provision. Any number of
// dispatcher processes run against it.
type Cluster struct {
	T      T
	Server *Server
	Events *Recorder
	// Log takes what dispatchers log, if it is set.
	Log klog.LogSink

	// Images are what containers do, by the name of their image.
	Images map[string]Image
	// Storage holds the UID of each claim that has a volume, and Contents the UID of the claim that
	// it was made from, empty if it was made empty.
	Storage  map[string]bool
	Contents map[string]string
	// Runs are the runs that came to their end by themselves, in order; one for each claim of a
	// batch.
	Runs []*Run

	// Mounted are the names of the claims that a pod uses.
	Mounted map[string]bool
	// NoPodFor are the names of the claims whose Jobs get no pod.
	NoPodFor map[string]bool
	// NodeLost: no kubelet ends a pod that is deleted.
	NodeLost bool
	// Ahead is how far the clocks of dispatchers are ahead of the API server's that start from then
	// on.
	Ahead time.Duration
	// Frozen are the nodes on which nothing moves, and Clocks how far the clock of a node is ahead.
	// CutOff are those that reach no API server: what runs there goes on, until its deadline.
	Frozen map[string]bool
	CutOff map[string]bool
	Clocks map[string]time.Duration
	// BinderDown: the PV controller does nothing.
	BinderDown bool
	// BinderLooksAfter is how long a claim waits in the PV controller's queue before that looks at
	// it for the first time.
	BinderLooksAfter time.Duration
	// AnnotatesAfter is how long the PV controller's annotation of a claim waits for its client's
	// rate limiter. It is of the claim as it was before.
	AnnotatesAfter time.Duration
	// Cordoned is how the names of the nodes begin that take no pods.
	Cordoned string
	// Choices are the nodes that the scheduler selects for claims, one after the other, the last
	// for ever.
	Choices []string

	// Worlds are what the cluster does beside, where it is asked for.
	Worlds Worlds

	// Downtime is how long a killed dispatcher stays away.
	Downtime time.Duration
	// DieAfterEveryWrite: each dispatcher that replaces a killed one dies after its first write.
	DieAfterEveryWrite bool
	// Deaths counts the dispatchers that were killed and replaced.
	Deaths int64
	// BeforeWrite, when set, runs before a dispatcher writes on a Job, a pod, a claim or a
	// PersistentVolume, with the verb and the resource. A slow API server is one that sleeps here, and
	// so is a process that is stopped between its last look and its write.
	BeforeWrite func(verb, resource string)
	// Panics is set by a test in which dispatchers panic.
	Panics bool

	clock         clock.WithTickerAndDelayedExecution
	await         func()
	newDispatcher NewDispatcher
	processes     []*Process
	newest        *Process
	started       int                      // processes so far
	pick          func(n int) int          // of a cluster that is stepped through
	containers    map[types.UID]*Container // that run a Program, by pod
	sizes         map[string]int64         // of volumes that were expanded, by claim UID
	members       map[types.UID][]string
	podsMade      map[types.UID]int   // by Job
	asked         map[types.UID]asked // claims that wait for their annotation
	next          time.Time           // when something but a dispatcher is due to move again
}

// New returns a cluster with nothing in it. In a bubble of testing/synctest clk shows that bubble's
// time, and await is synctest.Wait: it returns when every dispatcher has nothing left to do.
// newDispatcher makes what every started process runs.
func New(t T, clk clock.WithTickerAndDelayedExecution, await func(), newDispatcher NewDispatcher) *Cluster {
	c := &Cluster{
		T: t, clock: clk, await: await, newDispatcher: newDispatcher,
		Server: newServer(clk), Events: &Recorder{clock: clk},
		Images: map[string]Image{}, Storage: map[string]bool{}, Contents: map[string]string{}, Mounted: map[string]bool{}, NoPodFor: map[string]bool{},
		Frozen: map[string]bool{}, CutOff: map[string]bool{}, Clocks: map[string]time.Duration{},
		sizes: map[string]int64{}, members: map[types.UID][]string{}, podsMade: map[types.UID]int{}, asked: map[types.UID]asked{}, containers: map[types.UID]*Container{},
	}
	return c
}

// Until lets time go on until a condition holds, and fails the test if that takes longer than
// limit.
func (c *Cluster) Until(what string, limit time.Duration, holds func() bool) {
	c.T.Helper()
	end := c.clock.Now().Add(limit)
	for before := c.Server.size(); ; {
		if c.Server.size() > before+10000 {
			c.T.Fatalf("a storm of writes while waiting for: %s\n%s", what, c.Story())
		}
		c.await()
		c.replaceKilled()
		if holds() {
			return
		}
		if c.MoveAll() {
			continue
		}
		if !c.clock.Now().Before(end) {
			c.T.Fatalf("not within %s: %s\n%s", limit, what, c.Story())
		}
		c.sleep(end)
	}
}

// Advance lets time go on for a while.
func (c *Cluster) Advance(d time.Duration) {
	c.T.Helper()
	end := c.clock.Now().Add(d)
	c.Until("the end of the wait", d, func() bool { return !c.clock.Now().Before(end) })
}

// MoveAll lets everything but the dispatchers move once, one thing after the other. It reports
// whether anything did.
func (c *Cluster) MoveAll() bool {
	before := c.Server.size()
	c.next = time.Time{}
	c.runPVController()
	c.runJobController()
	c.runKubelets()
	return c.Server.size() > before
}

// due reports whether a time has come. If not, the cluster moves again then.
func (c *Cluster) due(at time.Time) bool {
	if !c.clock.Now().Before(at) {
		return true
	}
	if c.next.IsZero() || at.Before(c.next) {
		c.next = at
	}
	return false
}

// sleep waits until a client writes, something is due, or the end.
func (c *Cluster) sleep(end time.Time) {
	if !c.next.IsZero() && c.next.Before(end) {
		end = c.next
	}
	timer := c.clock.NewTimer(end.Sub(c.clock.Now()))
	defer timer.Stop()
	select {
	case <-c.Server.written:
	case <-timer.C():
	}
}

func (c *Cluster) now() metav1.Time { return metav1.NewTime(c.clock.Now()) }

// Story returns all that was written and emitted, for a test that fails.
func (c *Cluster) Story() string {
	var out strings.Builder
	start := time.Time{}
	for _, change := range c.Server.History() {
		if start.IsZero() {
			start = change.At
		}
		fmt.Fprintf(&out, "%10s %s %s %s/%s\n", change.At.Sub(start), change.By, change.Verb, change.Resource, change.Name)
	}
	for _, e := range c.Events.About("", "") {
		fmt.Fprintf(&out, "%10s event %s %s: %s\n", e.At.Sub(start), e.About, e.Reason, e.Note)
	}
	return out.String()
}

// Empty reports that there is no volume, no PV and no Job whose record is held.
func (c *Cluster) Empty() bool {
	return len(c.Storage) == 0 && len(shared[*corev1.PersistentVolume](c)) == 0 && len(c.HeldRecords()) == 0
}
