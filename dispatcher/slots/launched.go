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
		a = &Assignment{ClassKey: KeyOfObject(job), flow: flowOf(job), start: StartOf(job)}
	}
	delete(s.assigned, uid)
	a.uid = uid
	s.launched[jobKey(job)] = a
}

// Created records that a Job exists, as the API server answered. A cache that is newer and does not
// show the Job never will: it was deleted meanwhile. Its slot was once kept until a restart
// (TestASlotOfAJobThatTheCacheNeverShowsIsFree).
func (s *Slots) Created(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.launched[jobKey(job)]; a != nil {
		a.version = job.ResourceVersion
	}
}

// Unused gives the slot of a Job that was not created back to the UID. The UID keeps it until End,
// for another Job.
func (s *Slots) Unused(uid types.UID, job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.launched[jobKey(job)]; a != nil {
		s.assigned[uid] = a
	}
	delete(s.launched, jobKey(job))
}

// unknownFor is how long a Job holds a slot of which it is unknown whether it exists, and that the
// cache does not show. After that it does not, or it is not the dispatcher's.
const unknownFor = 30 * time.Second

// Unknown records that a Job may exist: the API server's answer to its creation was lost, now or a
// moment ago. It holds its slot until the cache shows it, or for a while. No event says when that has
// passed, so the clock has the slot assigned again.
func (s *Slots) Unknown(_ types.UID, job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.launched[jobKey(job)]; a != nil {
		a.until = s.clock.Now().Add(unknownFor)
		s.clock.AfterFunc(unknownFor, func() { go s.Assign(a.ClassKey) }) // not by the clock, which may hold a lock
	}
}

// forgetLaunched forgets the Jobs that the cache should have shown by now, if they existed. A pod
// that such a Job has left counts for itself.
func (s *Slots) forgetLaunched() {
	now := s.clock.Now()
	maps.DeleteFunc(s.launched, func(name string, a *Assignment) bool {
		return (s.isPassed(a) || !a.until.IsZero() && !now.Before(a.until)) && s.caches.Jobs.Named(name) == nil
	})
}

// isPassed reports whether the cache is newer than the creation of a launched Job.
func (s *Slots) isPassed(a *Assignment) bool {
	return a.version != "" && s.caches.HavePassed(a.Namespace, a.version)
}

// passedOf returns the classes in which a Job of a UID was launched that the cache has passed: if it
// does not show the Job, its slot is free.
func (s *Slots) passedOf(uid types.UID) []ClassKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ClassKey
	for _, a := range s.launched {
		if a.uid == uid && s.isPassed(a) {
			out = append(out, a.ClassKey)
		}
	}
	return out
}
