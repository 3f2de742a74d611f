package fakecluster

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// DispatcherName is the name under which dispatchers' writes stand in the history.
const DispatcherName = "dispatcher"

// Dispatcher is what a Process runs.
type Dispatcher interface {
	// Start fills the caches, and reports whether they were filled before ctx ended.
	Start(ctx context.Context) bool
	// Run reconciles until ctx ends.
	Run(ctx context.Context)
	// Stopped waits for the watches to end.
	Stopped()
}

// NewDispatcher makes the dispatcher of a process, which reaches the world by the process's client,
// recorder and clock.
type NewDispatcher func(*Process) (Dispatcher, error)

// Process is one life of a dispatcher, with a client, watches and a death of its own.
type Process struct {
	Client kubernetes.Interface
	Events events.EventRecorder
	Clock  clock.WithTickerAndDelayedExecution

	// Number among the processes of the cluster, from 1.
	Number int

	server   *Server
	requests *fake.Clientset
	cancel   context.CancelFunc
	done     chan struct{}
	dead     atomic.Bool
	// losesEvents: what it emits when it dies is lost, of the events that recorder keeps.
	losesEvents bool
	recorder    *Recorder
	writes      atomic.Int64
	// lastWrite is the number of the write after which the process is killed; 0: it lives.
	lastWrite int64
	// delayed are the resources of which its watches bring nothing for now. The server's lock
	// guards it.
	delayed map[string]bool
	waits   waits
	timers  timers
	pick    func(n int) int
}

// startTakes is how long a start takes in a cluster that is stepped through. Caches are looked at
// every 100 ms until they are filled, and whether the first look finds them so depends on the
// machine: a seed would not happen the same way again.
const startTakes = time.Second

// Start brings up a dispatcher, beside those that run already.
func (c *Cluster) Start() *Process { return c.StartMortal(0) }

// StartMortal brings up a dispatcher that is killed after a number of writes, and replaced after
// the downtime; 0: never.
func (c *Cluster) StartMortal(writes int64) *Process {
	c.T.Helper()
	p := c.newProcess(writes)
	d, err := c.newDispatcher(p)
	if err != nil {
		c.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	p.cancel = cancel
	began := c.clock.Now()
	if !d.Start(ctx) {
		c.T.Fatal("the caches were not filled")
	}
	if c.Server.stepped {
		c.clock.Sleep(startTakes - c.clock.Since(began))
	}
	go func() {
		defer close(p.done)
		d.Run(ctx)
		d.Stopped()
	}()
	c.processes, c.newest = append(c.processes, p), p
	return p
}

func (c *Cluster) newProcess(writes int64) *Process {
	c.started++
	p := &Process{
		Number: c.started, Clock: ahead{c.clock, c.Ahead}, losesEvents: c.Worlds.LosesEvents, recorder: c.Events,
		server: c.Server, done: make(chan struct{}), lastWrite: writes, delayed: map[string]bool{}, pick: c.pick,
	}
	if c.Server.stepped {
		p.Clock = ahead{steppedClock{c.clock, &p.timers}, c.Ahead}
	}
	p.Events = ofProcess{c.Events, p}
	p.requests = c.Server.client(DispatcherName, p)
	p.Client = newPausing(p.requests, c.BeforeWrite)
	return p
}

// ahead is a clock that shows a later time.
type ahead struct {
	clock.WithTickerAndDelayedExecution

	by time.Duration
}

func (a ahead) Now() time.Time { return a.WithTickerAndDelayedExecution.Now().Add(a.by) }

func (a ahead) Since(t time.Time) time.Duration { return a.Now().Sub(t) }

// Context returns a context whose logger writes to the cluster's log. Without one it discards all.
func (c *Cluster) Context() context.Context {
	return klog.NewContext(c.T.Context(), klog.New(c.Log))
}

// Stop ends every dispatcher and waits for all their goroutines.
func (c *Cluster) Stop() {
	for _, p := range c.processes {
		p.stop()
	}
	if len(c.processes) > 0 {
		c.clock.Sleep(time.Second) // for the workqueues' own goroutines
	}
	c.processes = nil
}

func (p *Process) stop() {
	p.dead.Store(true)
	p.cancel()
	<-p.done
}

// Dispatcher returns the process that was started last.
func (c *Cluster) Dispatcher() *Process { return c.newest }

// replaceKilled starts another dispatcher for each that was killed.
func (c *Cluster) replaceKilled() {
	for i := 0; i < len(c.processes); i++ {
		p := c.processes[i]
		if !p.killed() {
			continue
		}
		c.Deaths++
		c.End(p)
		c.Advance(c.Downtime)
		if c.DieAfterEveryWrite {
			c.StartMortal(1)
		} else {
			c.Start()
		}
		i = -1 // the wait may have changed the list
	}
}

// Requests returns all requests that the process has made.
func (p *Process) Requests() []clienttesting.Action { return p.requests.Actions() }

// DelayWatches keeps this process's watches of a resource from bringing anything, or lets them
// catch up.
func (p *Process) DelayWatches(resource string, delayed bool) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.delayed[resource], p.server.everDelayed[resource] = delayed, true
	p.server.notifyWatches(resource)
}

// Relist ends this process's watches of a resource, delayed or not, and begins them anew: of what
// they have not brought, only the difference is seen.
func (p *Process) Relist(resource string) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	delete(p.delayed, resource)
	for w := range p.server.watches {
		if w.process == p && w.resource == resource {
			w.relist()
		}
	}
	p.server.notifyWatches(resource)
}

func (p *Process) killed() bool { return p != nil && p.dead.Load() }

func (p *Process) wrote(n int) {
	if p == nil || n == 0 {
		return
	}
	if done := p.writes.Add(int64(n)); p.lastWrite > 0 && done >= p.lastWrite && !p.dead.Swap(true) && p.losesEvents {
		p.recorder.lose(p)
	}
}
