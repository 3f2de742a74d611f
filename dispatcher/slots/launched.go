package slots

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// launched is a Job that uses slots although the cache does not have it yet.
type launched struct {
	ClassKey
	flow  Flow
	start Start
	// parallel is how many slots it uses: one for each script that it runs at a time.
	parallel int
	// version is the Job's, as the API server answered.
	version string
	// counts is until when it counts if the cache does not show it, where it is unknown whether it
	// exists. Zero: it exists.
	counts time.Time
}

// Use counts a Job that is about to be created.
func (s *Slots) Use(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteUsed(job, true)
	s.launched[jobKey(job)] = &launched{ClassKey: KeyOfObject(job), flow: flowOf(job), start: StartOf(job), parallel: jobs.ParallelOf(job)}
}

// Created records that a Job exists, as the API server answered. A cache that is newer and does not
// show the Job never will: it was deleted meanwhile. Its slot was once kept until a restart
// (TestASlotOfAJobThatTheCacheNeverShowsIsFree).
func (s *Slots) Created(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.launched[jobKey(job)]; l != nil {
		l.version = job.ResourceVersion
	}
}

// noteUsed notes whether the Job of a UID counts, instead of its offer.
func (s *Slots) noteUsed(job *batchv1.Job, used bool) {
	if t := s.offers[types.UID(jobs.UIDs(job)[0])]; t != nil {
		t.used = used
	}
}

// Unused records that a Job was not created.
func (s *Slots) Unused(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteUsed(job, false)
	delete(s.launched, jobKey(job))
}

// unknownFor is how long a Job holds a slot of which it is unknown whether it exists, and that the
// cache does not show. After that it does not, or it is not the dispatcher's.
const unknownFor = 30 * time.Second

// Unknown records that a Job may exist: the API server's answer to its creation was lost, now or a
// moment ago. It holds its slot until the cache shows it, or for a while.
func (s *Slots) Unknown(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.launched[jobKey(job)]; l != nil {
		l.counts = s.clock.Now().Add(unknownFor)
	}
}

// forgetLaunched forgets the Jobs that the cache should have shown by now, if they existed. A pod
// that such a Job has left counts for itself.
func (s *Slots) forgetLaunched() {
	now := s.clock.Now()
	maps.DeleteFunc(s.launched, func(name string, l *launched) bool {
		return (s.isPassed(l) || !l.counts.IsZero() && !now.Before(l.counts)) && s.caches.Jobs.Named(name) == nil
	})
}

// isPassed reports whether the cache is newer than the creation of a launched Job.
func (s *Slots) isPassed(l *launched) bool {
	return l.version != "" && s.caches.HavePassed(l.Namespace, l.version)
}

// until returns when it may be known that a launched Job does not exist: no event says so.
func (l *launched) until(now time.Time) time.Time {
	if l.counts.IsZero() {
		return now.Add(unseenFor)
	}
	return l.counts
}
