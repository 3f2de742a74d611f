package model

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// isFull reports whether the model is to be explored in its full size: make model.
func isFull() bool { return os.Getenv("MODEL") == "full" }

// tally is what all explorations together have found.
type tally struct {
	sync.Mutex
	states, transitions, decisions int
	fired                          map[string]int
	found                          map[string]string // the shortest trace to each known defect
	unknown                        map[broken]bool
	moves                          map[move]bool
}

// add adds an exploration. What it has found that is not listed is reported at once: make mutants
// need not wait for the other worlds.
func (c *tally) add(t *testing.T, e *explorer) {
	t.Helper()
	c.Lock()
	defer c.Unlock()
	c.states, c.transitions, c.decisions = c.states+len(e.nodes), c.transitions+e.transitions, c.decisions+len(e.decisions)-1
	for name, n := range e.fired {
		c.fired[name] += n
	}
	e.addMoves(c.moves)
	for b, at := range e.findings {
		trace := fmt.Sprintf("world %q, state %d: %s\n%s", e.w.name, at, b, e.trace(at, e.after[b]))
		name := nameOf(b)
		known, is := c.found[name]
		switch {
		case name == "" && !c.unknown[b]:
			c.unknown[b] = true
			t.Errorf("the model finds a defect that is not listed in knownDefects:\n%s", trace)
		case name != "" && (!is || lines(trace) < lines(known)):
			c.found[name] = trace
		}
	}
}

func TestModelFindsEveryKnownDefectAndNoOther(t *testing.T) {
	all := &tally{fired: map[string]int{}, found: map[string]string{}, unknown: map[broken]bool{}, moves: map[move]bool{}}
	t.Run("worlds", func(t *testing.T) {
		for _, w := range slices.Concat(worlds(isFull()), hardWorlds()) {
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				e := newExplorer(w)
				e.run()
				e.checkEnds()
				all.add(t, e)
				t.Logf("%d states, %d transitions, %d decisions, %d times beyond %d Jobs, %d to their end, depth %d, in %s; %s",
					len(e.nodes), e.transitions, len(e.decisions)-1, e.ends, maxJobs, e.rested, e.depth(), time.Since(start).Round(time.Second), e.extent())
			})
		}
	})
	t.Logf("all: %d states, %d transitions, %d decisions, %d laws", all.states, all.transitions, all.decisions, len(lawNames))
	checkDefects(t, all)
	checkSize(t, all)
	if !isFull() {
		checkStates(t, all.moves)
	}
}

func checkDefects(t *testing.T, all *tally) {
	t.Helper()
	for _, d := range knownDefects {
		trace := all.found[d.name]
		if trace == "" {
			t.Errorf("the model does not find %q any more: remove it from knownDefects", d.name)
			continue
		}
		t.Logf("known defect: %s\n%s", d.name, trace)
	}
}

// least is how many states, transitions and decisions an exploration reaches at least. A model that
// no longer reaches its states would find nothing.
func least() (states, transitions, decisions int) {
	if isFull() {
		return 4_000_000, 10_000_000, 500_000
	}
	return 285_000, 740_000, 60_000
}

// reachable are the actions that one UID can reach.
var reachable = []decide.Action{
	decide.Wait{},
	decide.ReportProblem{},
	decide.StoreRevision{},
	decide.AwaitSlot{},
	decide.Launch{},
	decide.AnnounceReschedule{},
	decide.Reschedule{},
	decide.Cancel{},
	decide.RemovePodFinalizer{},
	freesPod{},
	decide.CreatePV{},
	decide.RecordOutcome{},
	decide.PublishResult{},
	decide.ReleaseRecord{},
	decide.SetFinalizer{},
	decide.Confirm{},
	decide.DeletePV{},
	decide.KeepVolume{},
	decide.SetResizeStage{},
}

func checkSize(t *testing.T, all *tally) {
	t.Helper()
	if states, transitions, decisions := least(); all.states < states || all.transitions < transitions || all.decisions < decisions {
		t.Errorf("the model has become smaller than %d states, %d transitions and %d decisions", states, transitions, decisions)
	}
	for _, action := range reachable {
		all.mustFire(t, kind(action))
	}
	for _, s := range allSteps() {
		all.mustFire(t, s.name)
	}
}

// mustFire fails the test if an action or a step never happened.
func (c *tally) mustFire(t *testing.T, name string) {
	t.Helper()
	t.Logf("%8d %s", c.fired[name], name)
	if c.fired[name] == 0 {
		t.Errorf("%q never happened", name)
	}
}
