package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/bubble"
	"github.com/flex-provisioner/flex-provisioner/test/invariants"
)

// TestMain takes away what client-go does with the errors of watches: it waits between two of them,
// by clocks of different worlds. It prints how often each act and fault has happened, where
// SIM_SEEDS asks for more than the usual seeds.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1600)        // a world is small, and thrown away as a whole
	utilruntime.ErrorHandlers = nil //nolint:reassign // the only way to be rid of its backoff
	code := m.Run()
	if os.Getenv("SIM_SEEDS") != "" && happened.seeds > 0 {
		if missed := happened.print(); len(missed) > 0 {
			fmt.Printf("fewer than %d times: %s\n", reachFor, strings.Join(missed, ", "))
			code = 1
		}
	}
	os.Exit(code)
}

const (
	// actsOfAWorld is how many acts of people and faults a world has. Then people leave it alone,
	// nothing fails any more, and it has to come to rest.
	actsOfAWorld = 60
	// restWithin is the limit for that, in the world's time, and restFor how long nothing must be
	// written then.
	restWithin = 12 * time.Hour
	restFor    = 40 * time.Minute
	// endedOf is of how many worlds one is ended after that: all claims and PVs are deleted.
	endedOf = 6
)

// world is a cluster that is stepped through: a seed decides what happens next, among all that can.
type world struct {
	*fakecluster.Cluster
	spec  *spec
	rand  *rand.Rand
	began time.Time
	// story is what has happened, a line for each move and each write.
	story strings.Builder
	// told are the writes and events that are in the story.
	told struct{ writes, events int }
	// claims and acts are counted. counts are the acts and faults by name.
	claims, acts int
	counts       map[string]int
	acted        []string // acts and faults, with what they were about
	// cinder is the storage of some classes.
	cinder storage
	// admission is what a write meets before it is stored. overtakes is set while others write in
	// between a dispatcher's look and its write, overtaken how often they have.
	admission admission
	overtakes bool
	overtaken int
	// pauses is how many writes dispatchers are to pause before, and paused are those that do.
	pauses int
	paused []chan struct{}
	// terminating is set while the further config namespace is being deleted.
	terminating bool
	backup      backup
	// clocks are how far the clocks of nodes are ahead, but for their drift.
	clocks map[string]time.Duration
	// shared is when two dispatchers were last at work.
	shared time.Time
	// calm is set when people and faults have ended.
	calm bool
}

// spec is what a kind of world has.
type spec struct {
	classes        []class
	people, faults []act
	// acts is how many acts of people and faults a world has, claims how many claims there are when
	// the first dispatcher starts.
	acts, claims int
	// begins is what is different when the world begins, if anything.
	begins func(*world)
	// isHard: what happens there is more than the dispatcher survives.
	isHard bool
}

// usualSpec returns what the worlds of usual seeds have.
func usualSpec() *spec {
	return &spec{classes: classes, people: people, faults: faults, acts: actsOfAWorld, claims: claimsAtFirst}
}

// newWorld returns a world with nothing in it, in which a source decides what happens.
func newWorld(t fakecluster.T, s *spec, source rand.Source) *world {
	w := &world{spec: s, rand: rand.New(source), began: time.Now(), counts: map[string]int{}}
	w.Cluster = bubble.New(t, w.newDispatcher)
	return w
}

// simulate lets a seed happen, and returns the world as it was in the end.
func simulate(t *testing.T, seed uint64) (w *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, usualSpec(), rand.NewPCG(seed, 0))
		defer w.Stop()
		over := false
		defer func() {
			switch {
			case t.Failed():
				t.Logf("seed %d:\n%s", seed, w.story.String())
			case !over: // it panics, and the log of a test that does is lost
				fmt.Fprintf(os.Stderr, "seed %d panics:\n%s", seed, w.story.String())
			}
		}()
		w.setUp()
		for w.acts < w.spec.acts {
			w.step()
		}
		w.checkSize()
		w.heal()
		w.comeToRest()
		w.checkRest()
		if w.rand.IntN(endedOf) == 0 {
			w.endAll()
		}
		w.countReached()
		invariants.Check(w.Cluster)
		over = true
	})
	return w
}

// kubeAPI is the API server's address.
const kubeAPI = "https://10.0.0.1"

func (w *world) newDispatcher(p *fakecluster.Process) (fakecluster.Dispatcher, error) {
	return controller.New(p.Client, p.Events, p.Clock, controller.Options{
		Dispatcher: config.Dispatcher{Provisioner: w.provisioner(p)}, Namespaces: []string{fakecluster.ConfigNamespace, further}, MissingIn: w.missingIn, Allowed: jobs.Allowances{},
		KubeAPI: kubeAPI, Workers: 1, AheadOfBinder: true,
		Claims: fakecluster.NewQueue[types.UID](p, "claims"), Runs: fakecluster.NewQueue[string](p, "runs"), Classes: fakecluster.NewQueue[string](p, "classes"), Revisions: fakecluster.NewQueue[string](p, "revisions"),
	})
}

// tell adds a line to the story, and one for each write and event since the last.
func (w *world) tell(format string, args ...any) {
	fmt.Fprintf(&w.story, "%10.3f %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
	w.tellWrites()
}

func (w *world) tellWrites() {
	history, events := w.Server.History(), w.Events.Since(w.told.events)
	for _, change := range history[w.told.writes:] {
		fmt.Fprintf(&w.story, "%10s   %s: %s %s %s\n", "", change.By, change.Verb, change.Resource, change.Name)
	}
	for _, e := range events {
		fmt.Fprintf(&w.story, "%10s   event %s about %s: %s\n", "", e.Reason, e.About, e.Note)
	}
	w.told.writes, w.told.events = len(history), w.told.events+len(events)
}

// do lets a move happen, and everything that follows from it at once.
func (w *world) do(name string, move func()) {
	move()
	synctest.Wait()
	w.tell("%s", name)
	w.afterMove(name)
	w.endKilled()
	if len(w.Processes()) > 1 {
		w.shared = time.Now()
	}
}

// afterMove checks what only a move of that name can have broken.
func (w *world) afterMove(name string) {
	if name == "kubelets" {
		w.checkParallel()
	}
}

// step lets one thing happen: an act, a fault, time, or whatever is next for a dispatcher or the
// rest of the cluster.
func (w *world) step() {
	synctest.Wait()
	switch n := w.rand.IntN(100); {
	case n < 4:
		w.happen(w.spec.people)
	case n < 7:
		w.happen(w.spec.faults)
	case n < 20:
		w.pass(pauses[w.rand.IntN(len(pauses))])
	default:
		moves := w.moves()
		one := moves[w.rand.IntN(len(moves))]
		w.do(one.Name, one.Do)
	}
}

// pauses are how long nothing happens.
var pauses = []time.Duration{
	100 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second,
	time.Minute, 5 * time.Minute,
}

// pass lets time pass. In a longer time containers make some requests.
func (w *world) pass(d time.Duration) {
	if d > time.Second {
		w.proceed(w.rand.IntN(30))
	}
	w.do(fmt.Sprintf("%s pass", d), func() { time.Sleep(d) })
	w.emptyNamespace()
}

// happen lets an act or a fault happen, if there is anything that it can be about.
func (w *world) happen(what []act) {
	one := what[w.rand.IntN(len(what))]
	about := ""
	w.do(one.name, func() { about = one.do(w) })
	if about == "" {
		return
	}
	w.tell("that was %s", about)
	w.acted = append(w.acted, fmt.Sprintf("%.0f s: %s: %s", time.Since(w.began).Seconds(), one.name, about))
	w.counts[one.name]++
	w.acts++
}

// endKilled ends the dispatchers that were killed. Another one may start at any time.
func (w *world) endKilled() {
	for _, p := range w.Processes() {
		if p.IsDead() {
			w.end(p)
			synctest.Wait()
			w.tell("dispatcher %d has died", p.Number)
		}
	}
}

// comeToRest lets the world go on without people and faults until nothing is written any more.
func (w *world) comeToRest() {
	healed := time.Now()
	end, last := time.Now().Add(restWithin), time.Now()
	for time.Since(last) < restFor {
		if time.Now().After(end) {
			w.T.Errorf("nothing comes to rest within %s", restWithin)
			return
		}
		before := w.writes()
		w.doAll()
		if w.writes() > before {
			last = time.Now()
		}
		w.pass(time.Second)
		if time.Since(last) > time.Minute {
			w.forgetRecords()
			w.giveUp(healed)
			w.pass(time.Minute)
		}
	}
}

// giveUp lets people do what events name as remedies, when they have read them for a while: users
// delete the claims that cannot be served as they are, administrators the PVs that they have
// written over others.
func (w *world) giveUp(healed time.Time) {
	if time.Since(healed) < 20*time.Minute {
		return
	}
	w.removeCopies()
	w.doAsEventsSay()
	for _, claim := range fakecluster.ListOf(w, w.isUsersToChange) {
		w.do("a user gives up "+claim.Name, func() { fakecluster.Delete(w, fakecluster.User, claim) })
	}
}

func (w *world) writes() int { return len(w.Server.History()) }

// doAll lets everything happen that can without time.
func (w *world) doAll() {
	for before, n := -1, 0; before < w.writes() || w.isBusy(); n++ {
		before = w.writes()
		if n > 10000 {
			for _, move := range w.Moves() {
				w.tell("still to come: %s", move.Name)
			}
			w.T.Fatalf("there is always something to do")
		}
		for _, move := range w.Moves() {
			move.Do()
			synctest.Wait()
			w.afterMove(move.Name)
		}
		w.tellWrites()
		if w.writes() > 200000 {
			w.T.Fatalf("a storm of writes")
		}
	}
}

// proceed lets containers make requests, as many as they have, up to a number.
func (w *world) proceed(requests int) {
	for range requests {
		moves := slices.DeleteFunc(w.Moves(), func(m fakecluster.Move) bool { return !strings.HasPrefix(m.Name, "container ") })
		if len(moves) == 0 {
			return
		}
		one := moves[w.rand.IntN(len(moves))]
		w.do(one.Name, one.Do)
	}
}

// isBusy reports whether a dispatcher or a container has something to do before time passes.
func (w *world) isBusy() bool {
	return slices.ContainsFunc(w.Moves(), func(m fakecluster.Move) bool {
		return strings.HasPrefix(m.Name, "dispatcher ") || strings.HasPrefix(m.Name, "container ")
	})
}
