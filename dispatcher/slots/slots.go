package slots

import (
	"maps"
	"strings"
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

// String returns the key as the queue of the classes has it, and KeyNamed reads that.
func (at ClassKey) String() string { return at.Namespace + "/" + at.Label }

// KeyNamed returns the key that String names.
func KeyNamed(name string) ClassKey {
	namespace, label, _ := strings.Cut(name, "/")
	return ClassKey{namespace, label}
}

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

// Slots holds the UIDs that wait to be launched in a class, and those that are offered a slot. The
// loop of the class asks those whether they still are to be launched, so what is known of one that
// waits may be old. When the last Job of a flow has expired, it is no longer known when the flow
// was served. An offer that came to nothing counts, too: a namespace whose UIDs never use theirs
// once got every slot of a class (TestANamespaceThatUsesNoSlotHoldsUpNoOther).
type Slots struct {
	caches  *cluster.Caches
	clock   clock.PassiveClock
	enqueue func(at ClassKey, after time.Duration)

	mu       sync.Mutex
	queues   map[ClassKey]*Queue
	served   map[ClassKey]map[Flow]time.Time
	jobs     map[ClassKey]map[Flow]map[string]bool // in the cache, by "namespace/name"
	offers   map[types.UID]*offer
	launched map[string]*launched // by the Job's "namespace/name"
	// paced are the groups of which a UID was offered a slot a moment ago.
	paced map[groupKey]paced
	// passes says how slots of a class were offered last.
	passes map[ClassKey]pass
}

// pass says when the Jobs of a class were counted last, whether all slots were in use then, and
// whether an offer has come to nothing since.
type pass struct {
	at           time.Time
	full, wasted bool
}

// New returns Slots that count the Jobs in the caches. enqueue is called to have slots offered in a
// class, after some time.
func New(caches *cluster.Caches, clk clock.PassiveClock, enqueue func(at ClassKey, after time.Duration)) *Slots {
	return &Slots{
		caches: caches, clock: clk, enqueue: enqueue,
		queues: map[ClassKey]*Queue{}, served: map[ClassKey]map[Flow]time.Time{}, jobs: map[ClassKey]map[Flow]map[string]bool{},
		offers: map[types.UID]*offer{}, launched: map[string]*launched{}, paced: map[groupKey]paced{}, passes: map[ClassKey]pass{},
	}
}

// Await adds a UID to the queue of a class. One that is offered a slot has nothing to wait for any
// more.
func (s *Slots) Await(at ClassKey, w Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(w.UID)
	switch t := s.offers[types.UID(w.UID)]; {
	case t == nil:
		s.add(at, w)
	case t.ClassKey == at:
		t.Waiter, t.due = w, time.Time{}
	default: // that offer ends, and it waits here then
		t.due, at = time.Time{}, t.ClassKey
	}
	if last := s.passes[at]; last.full || last.wasted {
		s.enqueueSoon(at)
	} else {
		s.enqueue(at, s.gathering(at))
	}
}

// gatherFor is how soon a slot is offered for a UID that comes while slots are free. Those of one
// write, such as the deletion of a namespace, come together, and share Jobs.
const gatherFor = 10 * time.Millisecond

// gathering returns how soon a slot is offered when a slot is free. Those that wait in a full class
// have come long ago.
func (s *Slots) gathering(at ClassKey) time.Duration {
	if s.passes[at].full {
		return 0
	}
	return gatherFor
}

func (s *Slots) add(at ClassKey, w Waiter) {
	if s.queues[at] == nil {
		s.queues[at] = &Queue{}
	}
	s.queues[at].Add(w)
	s.noteNewest(at, w)
}

// Leave removes a UID from its queue, if it waits.
func (s *Slots) Leave(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(string(uid))
}

func (s *Slots) leave(uid string) {
	for _, queue := range s.queues {
		queue.Remove(uid)
	}
}

// Awaits reports whether a UID waits, or is offered a slot.
func (s *Slots) Awaits(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range s.queues {
		if queue.Has(string(uid)) {
			return true
		}
	}
	return s.offers[uid] != nil
}

// Freed has slots offered in a class in which a slot may be free now, if a UID waits.
func (s *Slots) Freed(at ClassKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.anyWaits(at) {
		s.enqueue(at, s.gathering(at))
	}
}

// anyWaits reports whether a UID waits in a class.
func (s *Slots) anyWaits(at ClassKey) bool { return s.queues[at] != nil && s.queues[at].Len() > 0 }

// FreedSoon does the same with the classes of the Jobs of a UID, and soon: one of them may have
// started, or the time may be over for which it held a slot.
func (s *Slots) FreedSoon(uid types.UID) {
	all := s.caches.Jobs.By(cluster.ByUID, string(uid))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range all {
		if at := KeyOfObject(job); s.anyWaits(at) {
			s.enqueueSoon(at)
		}
	}
}

// countPause is for how long the Jobs of a class are not counted again after a UID was reconciled:
// what has ended is counted at once, by the event that says so. In a burst each UID is reconciled
// ten times, and each time all Jobs of the class were counted: half of the dispatcher's work.
const countPause = 100 * time.Millisecond

// enqueueSoon has slots offered in a class in a moment, or when countPause is over.
func (s *Slots) enqueueSoon(at ClassKey) {
	s.enqueue(at, max(gatherFor, countPause-s.clock.Since(s.passes[at].at)))
}

// unusedKept is for how long it is kept when a flow was offered a slot in vain that has no Jobs and
// that does not wait: its UID is reconciled again before it waits for the next one.
const unusedKept = time.Minute

// noteUnused records that a flow was offered a slot in vain, and forgets old ones.
func (s *Slots) noteUnused(at ClassKey, flow Flow) {
	now := s.clock.Now()
	s.knowClass(at)
	s.served[at][flow] = now
	s.passes[at] = pass{at: s.passes[at].at, full: s.passes[at].full, wasted: true}
	maps.DeleteFunc(s.served[at], func(flow Flow, served time.Time) bool {
		return len(s.jobs[at][flow]) == 0 && !s.queues[at].waits(flow) && now.Sub(served) > unusedKept
	})
}

// knowClass makes room for what is known of the flows of a class.
func (s *Slots) knowClass(at ClassKey) {
	if s.served[at] == nil {
		s.served[at], s.jobs[at] = map[Flow]time.Time{}, map[Flow]map[string]bool{}
	}
}

// load counts a class's Jobs, with those that the cache does not have yet. These are counted first,
// so that a Job that appears meanwhile is counted twice for a moment, not missed.
func (s *Slots) load(at ClassKey, limit int) Load {
	load := Load{Running: map[Flow]int{}, Served: s.served[at]}
	s.forgetLaunched()
	for name, l := range s.launched {
		if l.ClassKey == at && s.caches.Jobs.Named(name) == nil {
			load.Running[l.flow] += l.parallel
		}
	}
	for _, h := range s.holders(at, limit) {
		load.Running[h.Flow] += h.parallel
	}
	for _, t := range s.offers {
		if t.ClassKey == at && !t.joins && !t.used {
			load.Running[t.Flow] += max(t.parallel, 1)
		}
	}
	return load
}

// Widen returns how many scripts at a time the Job of a UID that is offered a slot may run, at least
// one. Beside that slot it takes at most half of those that are free in its class, so that a burst
// of one verb leaves some to the others.
func (s *Slots) Widen(uid types.UID, most, limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.offers[uid]
	if t == nil {
		return 1
	}
	t.parallel = 1
	free := limit - s.load(t.ClassKey, limit).Busy()
	t.parallel += min(max(free, 0)/2, max(most-1, 0))
	return t.parallel
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
