//go:build e2e && storms

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// How much happens in a storm, and how long it may take.
const (
	stormLasts      = 4 * time.Minute
	stormClaims     = 100
	stormExpansions = 20
	stormDeletions  = 100
	wrongBy         = 10 * time.Minute
	// toAnswer is how long an act goes on trying: whom it asks may not be there.
	toAnswer = 12 * time.Minute
	// toRest has room for a claim that no backend had room for when Cinder was back: it is tried
	// again five minutes later.
	toRest = 12 * time.Minute
)

// API server, etcd, Cinder and all dispatchers are killed three times each, the disk of etcd is
// full once, and the clock of a node is off by ten minutes, while a hundred claims are made and
// used by pods, twenty of them grow, and a hundred others are deleted. Then everything comes to
// rest: each claim is bound to one volume, all data are read through the kubelet of the other node,
// and of what was deleted nothing is left. The moments come from a seed, which is printed;
// STORM_SEED=n repeats them. No other test runs meanwhile.
func TestNothingIsLostInAStorm(t *testing.T) {
	w := newWorld(t, "storm")
	s := w.newStorm(stormSeed(t))
	s.planFaults()
	s.planClaims()
	s.rage()
	s.comesToRest()
	s.readAll()
	s.audit()
	w.findsNoSecret(w.plant(), nil, w.labLogs()...)
	s.deleteAll()
}

// stormSeed returns the seed, a new one unless the environment names it.
func stormSeed(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv("STORM_SEED")
	if given == "" {
		return uint64(time.Now().UnixNano() % 1e9)
	}
	seed, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("STORM_SEED: %v", err)
	}
	return seed
}

// storm is what happens at random moments, all of which are known before it begins.
type storm struct {
	w      *world
	random *rand.Rand
	began  time.Time
	// threads are what happens independently of each other. Each is a list of acts.
	threads [][]act
	claims  []*stormClaim
	reports *reports
}

// act is something that happens at a moment of the storm, or later if the act before it in its
// thread takes longer.
type act struct {
	at   time.Duration
	what string // is printed, unless it is empty
	do   func(context.Context) error
}

func (w *world) newStorm(seed uint64) *storm {
	w.t.Helper()
	w.t.Logf("STORM_SEED=%d", seed)
	return &storm{w: w, random: rand.New(rand.NewPCG(seed, 0)), reports: w.listen()}
}

// between returns a random time.
func (s *storm) between(from, to time.Duration) time.Duration {
	return from + time.Duration(s.random.Int64N(int64(to-from)))
}

// pause is how long something is missing.
func (s *storm) pause() time.Duration {
	return s.between(time.Second, 15*time.Second).Round(time.Millisecond)
}

// moments returns a moment in each of so many parts of the storm.
func (s *storm) moments(parts int) []time.Duration {
	var out []time.Duration
	for i := range parts {
		part := stormLasts / time.Duration(parts)
		out = append(out, s.between(time.Duration(i)*part, time.Duration(i+1)*part))
	}
	return out
}

// add adds a thread.
func (s *storm) add(acts ...act) { s.threads = append(s.threads, acts) }

// rage lets everything happen, and returns when the last act is done.
func (s *storm) rage() {
	s.w.t.Helper()
	s.printPlan()
	s.began = time.Now()
	var running sync.WaitGroup
	errs := make([]error, len(s.threads))
	for i, acts := range s.threads {
		running.Go(func() { errs[i] = s.follow(acts) })
	}
	running.Wait()
	s.w.must(errors.Join(errs...), "what happens in the storm")
	s.w.t.Logf("the storm is over after %.1f s", s.since())
}

func (s *storm) since() float64 { return time.Since(s.began).Seconds() }

// follow does acts one after the other, also after one that has failed: a later one may undo it.
func (s *storm) follow(acts []act) error {
	var errs []error
	for _, a := range acts {
		time.Sleep(time.Until(s.began.Add(a.at)))
		began := time.Now()
		err := a.do(s.w.ctx())
		if a.what != "" {
			s.w.t.Logf("%5.1f s: %s; that took %.1f s and ended with: %v", s.since(), a.what, time.Since(began).Seconds(), err)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("at %s, %s: %w", a.at, cmp.Or(a.what, "an act of a claim"), err))
		}
	}
	return errors.Join(errs...)
}

// printPlan prints what has a name.
func (s *storm) printPlan() {
	var named []act
	for _, acts := range s.threads {
		named = append(named, slices.DeleteFunc(slices.Clone(acts), func(a act) bool { return a.what == "" })...)
	}
	slices.SortFunc(named, func(a, b act) int { return cmp.Compare(a.at, b.at) })
	for _, a := range named {
		s.w.t.Logf("planned at %5.1f s: %s", a.at.Seconds(), a.what)
	}
}
