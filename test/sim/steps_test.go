package sim_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// What must not depend on the machine: otherwise a seed would not happen the same way again.

// inAWorld calls do in a world that has begun, with a dispatcher that was started a moment ago.
func inAWorld(t *testing.T, do func(w *world, p *fakecluster.Process)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, usualSpec(), rand.NewPCG(0, 0))
		defer w.Stop()
		w.setUp()
		for _, p := range w.Processes() {
			w.end(p)
		}
		do(w, w.Start())
	})
}

// movesOf returns the moves whose names hold a text.
func (w *world) movesOf(text string) []fakecluster.Move {
	return slices.DeleteFunc(w.Moves(), func(m fakecluster.Move) bool { return !strings.Contains(m.Name, text) })
}

func TestADispatcherHasMovesAsSoonAsItHasStarted(t *testing.T) {
	t.Parallel()
	inAWorld(t, func(w *world, _ *fakecluster.Process) {
		if len(w.movesOf("takes an item of claims")) != 1 {
			t.Error("whether it has one depends on how far it is")
		}
	})
}

func TestTimersThatAreDueAtTheSameTimeAreMoves(t *testing.T) {
	t.Parallel()
	inAWorld(t, func(w *world, p *fakecluster.Process) {
		var called []string
		for _, name := range []string{"first", "second"} {
			p.Clock.AfterFunc(time.Second, func() { called = append(called, name) })
		}
		p.Clock.AfterFunc(time.Minute, func() { called = append(called, "late") })
		time.Sleep(2 * time.Second)
		if synctest.Wait(); len(called) != 0 {
			t.Errorf("called without a move: %v", called)
		}
		for _, move := range w.movesOf("timer") {
			move.Do()
		}
		if !slices.Equal(called, []string{"first", "second"}) || len(w.movesOf("timer")) != 0 {
			t.Errorf("called %v", called)
		}
	})
}

func TestAListBringsOneChangeAtATime(t *testing.T) {
	t.Parallel()
	inAWorld(t, func(w *world, p *fakecluster.Process) {
		w.CreateNode("node-8")
		w.CreateNode("node-9")
		p.Relist("nodes")
		for left := 2; left > 0; left-- {
			sees := w.movesOf("sees nodes")
			if len(sees) != 1 {
				t.Fatalf("%d moves before the last %d changes", len(sees), left)
			}
			sees[0].Do()
		}
		if len(w.movesOf("sees nodes")) != 0 {
			t.Error("a change is brought twice")
		}
	})
}
