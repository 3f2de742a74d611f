package slots

import (
	"maps"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// ClassKey is where the Jobs of a class are counted: the namespace in which they run, and the
// class's label.
type ClassKey struct{ Namespace, Label string }

// KeyOf returns where the Jobs of a config are counted.
func KeyOf(src config.Source) ClassKey {
	return ClassKey{src.Namespace, config.ClassLabel(src.Class)}
}

// StartOf returns what a Job starts with.
func StartOf(job *batchv1.Job) Start {
	return Start{job.Annotations[contract.AnnRevision], jobs.HeadOf(job).Nodes}
}

// KeyOfObject returns where a Job, or a pod of one, is counted.
func KeyOfObject(o metav1.Object) ClassKey {
	return ClassKey{o.GetNamespace(), o.GetLabels()[config.LabelClass]}
}

// Assignment is a slot that is in use although the cache does not have its Job yet.
type Assignment struct {
	ClassKey
	flow  Flow
	start Start
	group string
	// since is when the UID was assigned it.
	since time.Time
	// parallel is how many slots it counts for, 0 for one: a Job counts for each script that it runs
	// at a time.
	parallel int
	// behind is set if the UID waited behind a Job that could not start.
	behind bool
	// uid is for whom the Job was created, and version the Job's, as the API server answered.
	uid     types.UID
	version string
	// until is until when it counts if the cache does not show its Job, of which it is unknown
	// whether it exists. Zero: it exists.
	until time.Time
}

// Slots holds the UIDs that wait for a slot of a class and those that have been assigned one. A UID
// leaves its queue while it is reconciled and is added again if it still waits. When the last Job
// of a flow has expired, it is no longer known when the flow was served. A slot that was not used
// counts as served, too: a namespace whose UIDs never use theirs once got every slot of a class
// (TestANamespaceThatUsesNoSlotHoldsUpNoOther).
type Slots struct {
	caches  *cluster.Caches
	clock   clock.WithDelayedExecution
	enqueue func(types.UID)

	mu       sync.Mutex
	queues   map[ClassKey]*Queue
	served   map[ClassKey]map[Flow]time.Time
	jobs     map[ClassKey]map[Flow]map[string]bool // in the cache, by "namespace/name"
	assigned map[types.UID]*Assignment
	launched map[string]*Assignment // by the Job's "namespace/name"
	// paced are the groups that were assigned a slot a moment ago.
	paced map[groupKey]paced
	// counted says when the Jobs of a class were counted, with which it is not done too often.
	counted map[ClassKey]counting
	// joined are the UIDs that another UID's worker is about to launch with its own, with that
	// other UID. They are in no queue.
	joined map[types.UID]types.UID
}

// New returns Slots that count the Jobs in the caches. enqueue is called with each UID that is
// assigned a slot.
func New(caches *cluster.Caches, clk clock.WithDelayedExecution, enqueue func(types.UID)) *Slots {
	return &Slots{
		caches: caches, clock: clk, enqueue: enqueue,
		queues: map[ClassKey]*Queue{}, served: map[ClassKey]map[Flow]time.Time{}, jobs: map[ClassKey]map[Flow]map[string]bool{},
		assigned: map[types.UID]*Assignment{}, launched: map[string]*Assignment{}, joined: map[types.UID]types.UID{},
		paced: map[groupKey]paced{}, counted: map[ClassKey]counting{},
	}
}

// IsAssigned reports whether a UID has been assigned a slot of a config's class. Every launch needs
// one.
func (s *Slots) IsAssigned(uid types.UID, cfg config.Config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.assigned[uid]
	return a != nil && a.ClassKey == KeyOf(cfg.Source)
}

// Begin removes a UID from its queue while it is reconciled, so that no slot is assigned on facts
// that are being read again. It returns the slot that the UID has been assigned, if any.
func (s *Slots) Begin(uid types.UID) *Assignment {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range s.queues {
		queue.Remove(string(uid))
	}
	return s.assigned[uid]
}

// End reassigns the slot that a UID had and did not use, because something else had to be done
// first or the API server refused the Job: a UID that cannot be launched now must not hold up
// another, unless its next step is due in a moment. Then the free slots of every class in which the
// UID has Jobs are assigned, now or soon, since one of them may have started, or the time may be over
// for which it held one. It reports whether the UID waits, or has been assigned a slot since. UIDs that have joined and are still neither launched nor dismissed, since the work has
// panicked, wait again.
func (s *Slots) End(uid types.UID, had *Assignment, next time.Duration) bool {
	s.dismissJoined(uid)
	if had != nil && !s.holds(had, next) && s.revoke(uid, had) {
		s.Assign(had.ClassKey)
	}
	for _, job := range s.caches.Jobs.By(cluster.ByUID, string(uid)) {
		s.assignSoon(KeyOfObject(job))
	}
	for _, at := range s.passedOf(uid) {
		s.Assign(at)
	}
	return s.waitsOrHasSlot(uid)
}

// For how long a UID holds a slot that it does not use yet, and how soon its next step must be due.
// The consent of another namespace to a clone is read in about a second, and forgotten a minute
// later. A clone that waited longer for a slot lost each one that it was assigned.
const (
	longestHold = 10 * time.Second
	soon        = 2 * time.Second
)

// holds reports whether a UID keeps a slot until its next step, after this time.
func (s *Slots) holds(a *Assignment, next time.Duration) bool {
	return next > 0 && next <= soon && s.clock.Since(a.since) < longestHold
}

// waitsOrHasSlot reports whether a UID waits for a slot or has been assigned one.
func (s *Slots) waitsOrHasSlot(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range s.queues {
		if queue.Has(string(uid)) {
			return true
		}
	}
	return s.assigned[uid] != nil
}

// revoke takes back a slot that a UID had, and reports whether it was still unused.
func (s *Slots) revoke(uid types.UID, had *Assignment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	unused := s.assigned[uid] == had
	if unused {
		delete(s.assigned, uid)
		s.noteUnused(had)
	}
	return unused
}

// unusedKept is for how long it is kept when a flow was served that has no Jobs and that does not
// wait: its UID is reconciled again before it waits for the next one.
const unusedKept = time.Minute

// noteUnused records that a flow has had a slot and has not used it, and forgets old ones.
func (s *Slots) noteUnused(a *Assignment) {
	now := s.clock.Now()
	s.knowClass(a.ClassKey)
	s.served[a.ClassKey][a.flow] = now
	maps.DeleteFunc(s.served[a.ClassKey], func(flow Flow, at time.Time) bool {
		return len(s.jobs[a.ClassKey][flow]) == 0 && !s.queues[a.ClassKey].waits(flow) && now.Sub(at) > unusedKept
	})
}

// knowClass makes room for what is known of the flows of a class.
func (s *Slots) knowClass(at ClassKey) {
	if s.served[at] == nil {
		s.served[at], s.jobs[at] = map[Flow]time.Time{}, map[Flow]map[string]bool{}
	}
}

// Await adds a UID to the queue of a class. It may be assigned a slot at once.
func (s *Slots) Await(at ClassKey, w Waiter) {
	s.addWaiter(at, w)
	if s.wasFull(at) {
		s.assignSoon(at)
	} else {
		s.Assign(at)
	}
}

// addWaiter adds a UID to the queue of a class, unless it has joined the Job of another.
func (s *Slots) addWaiter(at ClassKey, w Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined[types.UID(w.UID)] != "" {
		return // it gets that Job, or is enqueued
	}
	if s.queues[at] == nil {
		s.queues[at] = &Queue{}
	}
	s.queues[at].Add(w)
	s.endPaceWhenQuiet(at, w)
}

// Assign assigns the free slots of a class to the next waiters, and enqueues those and no others.
func (s *Slots) Assign(at ClassKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queues[at]
	if queue == nil || queue.Len() == 0 {
		return
	}
	load := s.load(at, queue.Limit())
	free := queue.Limit() - load.Busy()
	s.counted[at] = counting{last: s.clock.Now(), isDue: s.counted[at].isDue, full: free <= 0}
	for _, w := range queue.Next(load, free, s.quotas(at, queue)) {
		queue.Remove(w.UID)
		s.assigned[types.UID(w.UID)] = &Assignment{ClassKey: at, flow: w.Flow, start: w.Start, group: w.Group, since: s.clock.Now(), behind: w.Behind}
		if w.Group != "" {
			s.startPace(at, w)
		}
		s.enqueue(types.UID(w.UID))
	}
}

// load counts a class's Jobs, with those that the cache does not have yet. These are counted first,
// so that a Job that appears meanwhile is counted twice for a moment, not missed.
func (s *Slots) load(at ClassKey, limit int) Load {
	load := Load{Running: map[Flow]int{}, Served: s.served[at]}
	s.forgetLaunched()
	for name, a := range s.launched {
		if a.ClassKey == at && s.caches.Jobs.Named(name) == nil {
			load.Running[a.flow] += a.counts()
		}
	}
	for _, h := range s.holders(at, limit) {
		load.Running[h.Flow] += h.parallel
	}
	for _, a := range s.assigned {
		if a.ClassKey == at {
			load.Running[a.flow] += a.counts()
		}
	}
	return load
}

func (a *Assignment) counts() int { return max(a.parallel, 1) }

// Widen lets a Job that is about to be launched run up to so many scripts at a time. Beside the
// slot that its first UID has been assigned it takes at most half of those that are free in its
// class, so that a burst of one verb leaves some to the others. It returns how many it may run, at
// least one.
func (s *Slots) Widen(uid types.UID, most, limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.assigned[uid]
	if a == nil {
		return 1
	}
	a.parallel = 1
	free := limit - s.load(a.ClassKey, limit).Busy()
	a.parallel += min(max(free, 0)/2, max(most-1, 0))
	return a.parallel
}

// Observe records that the cache has a Job, and when its flows were served.
func (s *Slots) Observe(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.launched, jobKey(job))
	at := KeyOfObject(job)
	s.knowClass(at)
	for _, flow := range flowsOf(job) {
		if s.jobs[at][flow] == nil {
			s.jobs[at][flow] = map[string]bool{}
		}
		s.jobs[at][flow][jobKey(job)] = true
		if created := job.CreationTimestamp.Time; created.After(s.served[at][flow]) {
			s.served[at][flow] = created
		}
	}
}

// Forget records that the cache no longer has a Job. A flow without Jobs is forgotten with its
// last: otherwise every namespace that there ever was would be compared whenever a slot is
// assigned.
func (s *Slots) Forget(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.launched, jobKey(job))
	at := KeyOfObject(job)
	for _, flow := range flowsOf(job) {
		delete(s.jobs[at][flow], jobKey(job))
		if len(s.jobs[at][flow]) == 0 {
			delete(s.jobs[at], flow)
			delete(s.served[at], flow)
		}
	}
}

// Join removes the next waiters of a group from their queue, to be launched with another UID. Until
// Dismiss they are assigned no slot of their own, since a UID has one Job at a time. by is that
// other UID.
func (s *Slots) Join(by types.UID, at ClassKey, group string, most int) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queues[at]
	if queue == nil {
		return nil
	}
	first, out := s.assigned[by], []types.UID(nil)
	for _, w := range queue.Take(group, first != nil && first.behind, s.load(at, queue.Limit()), most) {
		s.joined[types.UID(w.UID)] = by
		out = append(out, types.UID(w.UID))
	}
	return out
}

// Dismiss makes a UID that has joined wait for a slot of its own again.
func (s *Slots) Dismiss(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.joined, uid)
}

// dismissJoined dismisses what has joined a UID, and enqueues it.
func (s *Slots) dismissJoined(by types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, first := range s.joined {
		if first == by {
			delete(s.joined, uid)
			s.enqueue(uid)
		}
	}
}

// Waiting returns the number of UIDs that wait, by class and flow.
func (s *Slots) Waiting() map[ClassKey]map[Flow]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[ClassKey]map[Flow]int{}
	for at, queue := range s.queues {
		out[at] = queue.Flows()
	}
	return out
}

// flowOf returns the flow whose slot a Job uses: that of its first claim.
func flowOf(job *batchv1.Job) Flow { return flowsOf(job)[0] }

// flowsOf returns the flows of all claims that a Job serves.
func flowsOf(job *batchv1.Job) []Flow {
	verb := contract.Verb(job.Labels[jobs.LabelVerb])
	var out []Flow
	for _, namespace := range jobs.HeadOf(job).Namespaces {
		out = append(out, Flow{Namespace: namespace, Verb: verb})
	}
	if out == nil { // its record is damaged
		out = []Flow{{Verb: verb}}
	}
	return out
}

func jobKey(job *batchv1.Job) string { return job.Namespace + "/" + job.Name }
