package controller

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/fair"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// counter is where the Jobs of a class are counted: its label, and the namespace in which they run.
type counter struct{ namespace, class string }

// turn is a slot that is spoken for, although the cache shows no Job in it yet.
type turn struct {
	counter
	lane fair.Lane
}

// turns are who waits for a slot of a class and who has been given one. They are no memory: whoever is
// looked at leaves its line and joins it again if it still waits, and after a restart every UID is
// looked at. When the last Job of a lane has expired, when it was served is worth no more either.
type turns struct {
	mu       sync.Mutex
	lines    map[counter]*fair.Line
	served   map[counter]map[fair.Lane]time.Time
	given    map[types.UID]*turn
	launched map[string]*turn // by the Job's "namespace/name"
	// taken are those whom another UID's worker is about to launch with its own: they stand in no line.
	taken map[types.UID]bool
}

func newTurns() turns {
	return turns{
		lines: map[counter]*fair.Line{}, served: map[counter]map[fair.Lane]time.Time{},
		given: map[types.UID]*turn{}, launched: map[string]*turn{}, taken: map[types.UID]bool{},
	}
}

func counterOf(src config.Source) counter {
	return counter{src.Namespace, config.ClassLabel(src.Class)}
}

func counterOfJob(job *batchv1.Job) counter {
	return counter{job.Namespace, job.Labels[config.LabelClass]}
}

// laneOf is the lane whose turn a Job has used.
func laneOf(job *batchv1.Job) fair.Lane {
	return fair.Lane{Namespace: job.Annotations[jobs.AnnNamespace], Verb: contract.Verb(job.Labels[jobs.LabelVerb])}
}

// lanesOf are the lanes that a Job serves.
func lanesOf(job *batchv1.Job) map[fair.Lane]bool {
	lane, out := laneOf(job), map[fair.Lane]bool{}
	for _, uid := range jobs.UIDs(job) {
		lane.Namespace = job.Annotations[jobs.Key(job, uid, jobs.AnnNamespace)]
		out[lane] = true
	}
	return out
}

// slot tells whether it is a UID's turn: everybody stands in line for one, alone or not.
func (c *Controller) slot(uid types.UID, cfg config.Config) bool {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	t := c.turns.given[uid]
	return t != nil && t.counter == counterOf(cfg.Source)
}

// begin takes a UID out of its line while it is looked at, so that nobody is given a turn on facts that
// are being looked at anew. It returns the turn that the UID has, if any.
func (t *turns) begin(uid types.UID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.lines {
		line.Leave(string(uid))
	}
	return t.given[uid]
}

// end passes a turn on that was not used, because something else had to be done first or the API server
// refused: whoever cannot go now holds up nobody. Then whoever is next is woken, wherever the UID's Jobs
// run: one that makes no progress has given its slot away, and only time tells that. It returns whether
// the UID stands in line, or has got its turn since.
func (c *Controller) end(uid types.UID, had *turn) bool {
	if had != nil && c.turns.back(uid, had) {
		c.admit(had.counter)
	}
	for _, s := range c.caches.spaces {
		found, _ := s.jobs.ByIndex(byUID, string(uid))
		for _, obj := range found {
			c.admit(counterOfJob(obj.(*batchv1.Job)))
		}
	}
	return c.turns.waits(uid)
}

func (t *turns) waits(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.lines {
		if line.Has(string(uid)) {
			return true
		}
	}
	return t.given[uid] != nil
}

func (t *turns) back(uid types.UID, had *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	unused := t.given[uid] == had
	if unused {
		delete(t.given, uid)
	}
	return unused
}

// standInLine lets a UID wait for its turn, which may come at once.
func (c *Controller) standInLine(o *observation, a decide.AwaitSlot) {
	cfg, since := o.configFor(a.Verb), a.Since
	if since.IsZero() {
		since = asked(o, a.Verb)
	}
	at := counterOf(cfg.Source)
	c.turns.join(at, fair.Waiter{
		Lane: fair.Lane{Namespace: o.at.Namespace, Verb: a.Verb}, UID: string(o.uid), Since: since, Limit: cfg.MaxParallel,
		Group: groupOf(o, a.Verb, a.MayBatch),
	})
	c.admit(at)
}

// asked is when a first run of a verb was asked for, as far as the objects tell.
func asked(o *observation, verb contract.Verb) time.Time {
	switch {
	case verb == contract.Provision:
		return o.claim.CreationTimestamp.Time
	case o.pv != nil && o.pv.Status.LastPhaseTransitionTime != nil:
		return o.pv.Status.LastPhaseTransitionTime.Time
	}
	var last time.Time
	for _, job := range o.jobs {
		if job.CreationTimestamp.After(last) {
			last = job.CreationTimestamp.Time
		}
	}
	return last
}

func (t *turns) join(at counter, w fair.Waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[types.UID(w.UID)] {
		return // it gets a Job, or is woken
	}
	if t.lines[at] == nil {
		t.lines[at] = &fair.Line{}
	}
	t.lines[at].Join(w)
}

// admit gives the free slots of a class to those whose turn it is, and wakes them and nobody else.
func (c *Controller) admit(at counter) {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	line := c.turns.lines[at]
	if line == nil || line.Len() == 0 {
		return
	}
	load := c.load(at)
	for _, w := range line.Next(load, line.Limit()-load.Busy()) {
		line.Leave(w.UID)
		c.turns.given[types.UID(w.UID)] = &turn{at, w.Lane}
		c.queue.Add(types.UID(w.UID))
	}
}

// load counts a class's Jobs, with those that the cache does not show yet. These come first: one that
// appears meanwhile is counted twice for a moment, not missed.
func (c *Controller) load(at counter) fair.Load {
	load := fair.Load{Running: map[fair.Lane]int{}, Served: c.turns.served[at]}
	known := c.caches.spaces[at.namespace].jobs
	for name, t := range c.turns.launched {
		if _, shown, _ := known.GetByKey(name); t.counter == at && !shown {
			load.Running[t.lane]++
		}
	}
	unfinished, _ := known.ByIndex(byUnfinished, at.class)
	for _, obj := range unfinished {
		if job := obj.(*batchv1.Job); c.progresses(job) {
			load.Running[laneOf(job)]++
		}
	}
	for _, t := range c.turns.given {
		if t.counter == at {
			load.Running[t.lane]++
		}
	}
	return load
}

// use spends a UID's turn on a Job that is about to be launched.
func (t *turns) use(uid types.UID, job *batchv1.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.given, uid)
	t.launched[key(job)] = &turn{counterOfJob(job), laneOf(job)}
}

// unused: the Job was not made after all.
func (t *turns) unused(job *batchv1.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.launched, key(job))
}

// seen: the cache shows the Job, and so when its lane was served.
func (t *turns) seen(job *batchv1.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.launched, key(job))
	at := counterOfJob(job)
	if t.served[at] == nil {
		t.served[at] = map[fair.Lane]time.Time{}
	}
	for lane := range lanesOf(job) {
		if made := job.CreationTimestamp.Time; made.After(t.served[at][lane]) {
			t.served[at][lane] = made
		}
	}
}

func key(job *batchv1.Job) string { return job.Namespace + "/" + job.Name }
