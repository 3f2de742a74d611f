package slots

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// offer is a slot that the loop of a class offers to a UID. The UID is in no queue meanwhile.
type offer struct {
	ClassKey
	Waiter
	// since is when it began, and due when the UID is asked again that has something to wait for
	// which is over in a moment.
	since, due time.Time
	// joins is set if the UID is to share the Job of another, and uses no slot of its own.
	joins bool
	// parallel is how many slots it has: more than one after Widen. used is set while its Job counts
	// instead.
	parallel int
	used     bool
}

// Begin offers the free slots of a class to as many UIDs, and returns those UIDs.
// Each is offered one until End, Return or Launched.
func (s *Slots) Begin(at ClassKey) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, now := s.resume(at), s.clock.Now()
	maps.DeleteFunc(s.paced, func(_ groupKey, p paced) bool { return !now.Before(p.ends()) })
	if !s.anyWaits(at) {
		return out
	}
	queue := s.queues[at]
	load := s.load(at, queue.Limit())
	free := queue.Limit() - load.Busy()
	s.passes[at] = pass{at: now, full: free <= 0}
	for _, w := range queue.Next(load, free, s.quotas(at, queue)) {
		queue.Remove(w.UID)
		s.offers[types.UID(w.UID)] = &offer{ClassKey: at, Waiter: w, since: now}
		if w.Group != "" {
			s.paced[groupKey{at, w.Group}] = paced{since: now, lasts: paceOf(w.Verb)}
		}
		out = append(out, types.UID(w.UID))
	}
	return out
}

// resume returns the UIDs that have kept their offer and are to be asked again. The offers that the
// loop has not ended, since it has panicked, are among them, and who was to join waits again.
func (s *Slots) resume(at ClassKey) []types.UID {
	var out []types.UID
	for uid, t := range s.offers {
		switch {
		case t.ClassKey != at || s.clock.Now().Before(t.due):
		case t.joins:
			delete(s.offers, uid)
			s.add(at, t.Waiter)
		default:
			out = append(out, uid)
		}
	}
	slices.Sort(out)
	return out
}

// Join offers the Job of a UID to the next waiters of a group that can share it.
func (s *Slots) Join(first types.UID, group string, most int) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.offers[first]
	if t == nil || s.queues[t.ClassKey] == nil {
		return nil
	}
	queue, out := s.queues[t.ClassKey], []types.UID(nil)
	for _, w := range queue.Take(group, t.Behind, s.load(t.ClassKey, queue.Limit()), most) {
		s.offers[types.UID(w.UID)] = &offer{ClassKey: t.ClassKey, Waiter: w, since: s.clock.Now(), joins: true}
		out = append(out, types.UID(w.UID))
	}
	return out
}

// For how long a UID keeps an offer that it does not use yet, and how soon it must be able to. The
// consent of another namespace to a clone is read in about a second, and forgotten a minute later.
// A clone that waited longer lost each offer that it had.
const (
	longestKept = 10 * time.Second
	soon        = 2 * time.Second
)

// Keep lets a UID that waits for something until a time keep its offer, and the slot, or else ends
// the offer.
func (s *Slots) Keep(uid types.UID, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, now := s.offers[uid], s.clock.Now()
	if t != nil && !t.joins && until.After(now) && until.Sub(now) <= soon && now.Sub(t.since) < longestKept {
		t.due = until
		return
	}
	s.end(uid)
}

// End ends the offer of a UID that was not launched.
func (s *Slots) End(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(uid)
}

func (s *Slots) end(uid types.UID) {
	t := s.offers[uid]
	if t == nil {
		return
	}
	delete(s.offers, uid)
	if !t.joins {
		s.noteUnused(t.ClassKey, t.Flow)
	}
}

// Return ends the offer of a UID that was not launched for another's sake. It waits as before.
func (s *Slots) Return(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.offers[uid]; t != nil {
		delete(s.offers, uid)
		s.add(t.ClassKey, t.Waiter)
	}
}

// Launched ends the offer of a UID that has a Job now.
func (s *Slots) Launched(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.offers, uid)
}

// unseenFor is how soon it is looked again whether the cache has passed a Job that it does not
// show.
const unseenFor = time.Second

// Again returns when slots are to be offered in a class again although nothing has changed, zero
// for never.
func (s *Slots) Again(at ClassKey) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []time.Time
	for _, t := range s.offers {
		if t.ClassKey == at {
			due = append(due, t.due)
		}
	}
	if s.anyWaits(at) {
		due = append(due, s.dueForWaiters(at)...)
	}
	if len(due) == 0 {
		return 0
	}
	return max(slices.MinFunc(due, time.Time.Compare).Sub(s.clock.Now()), time.Millisecond)
}

// dueForWaiters returns when waiters of a class may be offered a slot: when the pace of a group
// ends, when it is known that a Job does not exist, or in a moment after an offer that came to
// nothing.
func (s *Slots) dueForWaiters(at ClassKey) (due []time.Time) {
	for of := range s.queues[at].peers {
		if key := (groupKey{at, of.group}); s.isPaced(key) {
			due = append(due, s.paced[key].ends())
		}
	}
	for name, l := range s.launched {
		if l.ClassKey == at && s.caches.Jobs.Named(name) == nil {
			due = append(due, l.until(s.clock.Now()))
		}
	}
	if last := s.passes[at]; last.wasted {
		due = append(due, last.at.Add(countPause))
	}
	return due
}
