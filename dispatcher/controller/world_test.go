package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// world is a cluster around one dispatcher, in fake time: an API server, kube-controller-manager and
// kubelets that run scripted images on a storage of a map. Everything but the dispatcher moves in pass,
// one thing after the other, when the dispatcher has nothing left to do.
type world struct {
	t          *testing.T
	server     *server
	events     *recorder
	images     map[string]image // by name
	storage    map[string]bool  // volumes, by claim UID
	sizes      map[string]int64 // of volumes that were expanded
	runs       []*run
	mounted    map[string]bool // claims that a pod uses, by name
	downtime   time.Duration   // how long a killed dispatcher stays away
	deaths     int64           // of dispatchers
	fragile    bool            // every dispatcher dies after its first write
	stuck      map[string]bool // claims whose Jobs get no pod, by name
	lostNode   bool            // no kubelet ends a pod that is deleted
	noBinder   bool            // the PV controller is down
	cordoned   string          // a node that takes no pods
	choices    []string        // what the scheduler chooses for claims, one after the other, the last for ever
	looks      atomic.Int64    // of dispatchers at a claim
	pause      func()          // before every Job that a dispatcher makes
	log        logLines        // of dispatchers
	options    controller.Options
	dispatcher *process
	metrics    metrics.KubeRegistry // of the dispatcher that lives
	next       time.Time            // when the world wants to move again
}

// process is one life of a dispatcher.
type process struct {
	cancel context.CancelFunc
	client *fake.Clientset
	done   chan struct{}
	dead   atomic.Bool
	writes atomic.Int64
	// last is the number of the write after which it is killed; 0: it lives.
	last int64
	// behind are the resources of which its caches hear nothing for now.
	behind map[string]bool
}

func (p *process) killed() bool { return p != nil && p.dead.Load() }

func (p *process) wrote(n int) {
	if p == nil || n == 0 {
		return
	}
	if done := p.writes.Add(int64(n)); p.last > 0 && done >= p.last {
		p.dead.Store(true)
	}
}

// inWorld runs a test in a world of its own, in fake time. Whatever it leaves running fails it.
func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, server: newServer(), events: &recorder{}, images: map[string]image{}, storage: map[string]bool{}, sizes: map[string]int64{},
			mounted: map[string]bool{}, stuck: map[string]bool{},
			options: controller.Options{
				Provisioner: contract.ProvisionerName, Namespaces: []string{home}, Allowed: jobs.Allowances{},
				KubeAPI: "https://10.0.0.1", Workers: 4,
			},
		}
		defer w.stop()
		test(w)
		w.mustNeverShrink()
		w.mustKeepTheLaws()
		if t.Failed() {
			t.Log(w.story())
		}
	})
}

// start brings up a dispatcher that is killed after a number of writes; 0: never.
func (w *world) start(last ...int64) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.New(lookLog{&w.looks, &w.log})))
	p := &process{cancel: cancel, done: make(chan struct{}), behind: map[string]bool{}}
	if len(last) > 0 {
		p.last = last[0]
	}
	p.client = w.server.client("dispatcher", p)
	c, err := controller.New(paused{p.client, w.pause}, w.events, clock.RealClock{}, w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.metrics = metrics.NewKubeRegistry()
	c.RegisterMetrics(w.metrics)
	if !c.Start(ctx) {
		w.t.Fatal("the caches were not filled")
	}
	go func() {
		defer close(p.done)
		c.Run(ctx)
		c.Stopped()
	}()
	w.dispatcher = p
}

// stop ends the dispatcher and waits for every goroutine of it.
func (w *world) stop() {
	if p := w.dispatcher; p != nil {
		p.dead.Store(true)
		p.cancel()
		<-p.done
		w.dispatcher = nil
		time.Sleep(time.Second) // for the queue's own loops
	}
}

// revive starts another dispatcher after one was killed.
func (w *world) revive() {
	if !w.dispatcher.killed() {
		return
	}
	w.deaths++
	w.stop()
	w.run(w.downtime)
	if w.fragile {
		w.start(1)
		return
	}
	w.start()
}

// due tells whether a time has come; if not, the world wakes then.
func (w *world) due(at time.Time) bool {
	if !time.Now().Before(at) {
		return true
	}
	if w.next.IsZero() || at.Before(w.next) {
		w.next = at
	}
	return false
}

// pass lets everything but the dispatcher move once; it returns whether anything did.
func (w *world) pass() bool {
	before := w.server.size()
	w.next = time.Time{}
	w.volumes()
	w.jobs()
	w.kubelets()
	return w.server.size() > before
}

// until lets time go on until something is so, and fails if that takes longer than limit.
func (w *world) until(what string, limit time.Duration, so func() bool) {
	w.t.Helper()
	end := time.Now().Add(limit)
	for before := w.server.size(); ; {
		if w.server.size() > before+10000 {
			w.t.Fatalf("a storm of writes while waiting for: %s\n%s", what, w.story())
		}
		synctest.Wait()
		w.revive()
		if so() {
			return
		}
		if w.pass() {
			continue
		}
		if !time.Now().Before(end) {
			w.t.Fatalf("not within %s: %s\n%s", limit, what, w.story())
		}
		w.sleep(end)
	}
}

// pass for a while.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	end := time.Now().Add(d)
	w.until("the end of the wait", d, func() bool { return !time.Now().Before(end) })
}

// sleep until somebody writes, the world wants to move, or the end.
func (w *world) sleep(end time.Time) {
	if !w.next.IsZero() && w.next.Before(end) {
		end = w.next
	}
	select {
	case <-w.server.written:
	case <-time.After(time.Until(end)):
	}
}

// story is all that was written and told, for a test that fails.
func (w *world) story() string {
	var out strings.Builder
	start := time.Time{}
	for _, c := range w.server.history() {
		if start.IsZero() {
			start = c.at
		}
		fmt.Fprintf(&out, "%10s %s %s %s/%s\n", c.at.Sub(start), c.by, c.verb, c.resource, c.name)
	}
	for _, e := range w.events.said("", "") {
		fmt.Fprintf(&out, "%10s event %s %s: %s\n", e.at.Sub(start), e.about, e.reason, e.note)
	}
	return out.String()
}
