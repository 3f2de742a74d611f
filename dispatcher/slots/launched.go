package slots

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Use turns a UID's assignment into a Job that is about to be created.
func (s *Slots) Use(uid types.UID, job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.assigned[uid]
	if a == nil {
		a = &Assignment{ClassKey: KeyOfJob(job), flow: flowOf(job), start: StartOf(job)}
	}
	delete(s.assigned, uid)
	s.launched[jobKey(job)] = a
}

// Unused gives the slot of a Job that was not created back to the UID. The UID keeps it until End, for another Job.
func (s *Slots) Unused(uid types.UID, job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.launched[jobKey(job)]; a != nil {
		s.assigned[uid] = a
	}
	delete(s.launched, jobKey(job))
}

// keptOnce is how long after a UID has kept a slot for a Job that may exist it does not keep another.
const keptOnce = 10 * time.Minute

// Unanswered is Unused for a Job of which it is unknown whether it was created. The UID keeps the slot until the End of
// its next reconcile, when the cache may show the Job. It does so once in a while only, since it must not hold up others.
func (s *Slots) Unanswered(uid types.UID, job *batchv1.Job) {
	s.Unused(uid, job)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	maps.DeleteFunc(s.kept, func(_ types.UID, at time.Time) bool { return now.Sub(at) > keptOnce })
	a := s.assigned[uid]
	if _, again := s.kept[uid]; again || a == nil {
		return
	}
	other := *a // End takes back the one that Begin has returned
	s.assigned[uid], s.kept[uid] = &other, now
}

// existsFor is how long a Job holds a slot that exists and that the cache does not show. After that it is perhaps not the
// dispatcher's.
const existsFor = 30 * time.Second

// Exists records that a Job that was to be created exists already. It holds its slot until the cache shows it: the answer to
// its creation may have been lost a moment ago.
func (s *Slots) Exists(_ types.UID, job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for name, since := range s.existing {
		if now.Sub(since) > keptOnce {
			delete(s.existing, name)
			delete(s.launched, name)
		}
	}
	if _, known := s.existing[jobKey(job)]; !known && s.launched[jobKey(job)] != nil {
		s.existing[jobKey(job)] = now
	}
}

// isUnseen reports whether the cache should have shown a Job that exists by now.
func (s *Slots) isUnseen(name string) bool {
	since, exists := s.existing[name]
	return exists && s.clock.Since(since) >= existsFor
}
