package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
)

// second is the second leader: what it is about to write, decided on an earlier state, and which of
// its caches are behind. 0 is nothing.
type second struct {
	holds   uint32
	deleted bool          // it has confirmed a reclaim so far that the PV is deleted
	frozen  [kinds]uint32 // what a cache shows that is behind
	wrote   [kinds]bool   // it has written since its cache fell behind
}

// decision is what was decided on what the caches show.
type decision struct {
	seen   state
	action decide.Action
	under  uint8 // the version of the config for a delete, an undo or an expand
	awaits bool  // a slot is awaited before
	stands standing
}

// writes reports whether a decision writes anything.
func (d *decision) writes() bool { return decide.IsWrite(d.action) }

// node is a state that was reached, and how.
type node struct {
	state  state
	from   int32
	how    string
	action uint32 // the decision that was carried out, if any
	next   uint32 // what the first leader decides here
}

// explorer visits every state of a world, the nearest first.
type explorer struct {
	w         world
	steps     []step
	nodes     []node
	reached   map[[2]uint64]struct{}
	decisions []decision
	decided   map[looked]uint32
	numbers   map[state]uint32
	shows     []state
	whole     bool // every state was visited

	transitions, ends int
	fired             map[string]int
	findings          map[broken]int32
	after             map[broken][]string // the steps from the finding's state to an end that breaks a law
	rested            int                 // how many states were followed to their end
}

func newExplorer(w world) *explorer {
	w.built, w.shows, w.configs, w.judged = built{}, shows{}, map[uint8]config.Config{}, &resolve.Judged{}
	return &explorer{
		w: w, steps: allSteps(), reached: map[[2]uint64]struct{}{}, decisions: make([]decision, 1), decided: map[looked]uint32{},
		numbers: map[state]uint32{}, shows: make([]state, 1),
		fired: map[string]int{}, findings: map[broken]int32{}, after: map[broken][]string{},
	}
}

// allSteps are all steps but those of the leaders.
func allSteps() []step {
	return slices.Concat(kubernetesSteps(), containerSteps(), failureSteps(), peopleSteps())
}

// run visits the states, at most as many as the explorer may.
func (e *explorer) run() {
	e.add(e.w.start(), -1, "the user creates the claim", 0)
	for at := int32(0); int(at) < len(e.nodes); at++ {
		if e.w.states > 0 && len(e.nodes) >= e.w.states || e.w.until != noLaw && e.finds(e.w.until) {
			return
		}
		s := e.nodes[at].state
		if s.broken.law != noLaw {
			continue
		}
		for _, step := range e.steps {
			step.take(&e.w, s, func(after state) { e.follow(after, at, step.name, 0) })
		}
		e.lead(s, at)
		if e.w.leaders == 2 {
			e.leadSecond(s, at)
		}
	}
	e.whole = true
}

// finds reports whether a law was broken.
func (e *explorer) finds(l law) bool {
	for b := range e.findings {
		if b.law == l {
			return true
		}
	}
	return false
}

// extent reports whether every state was visited.
func (e *explorer) extent() string {
	if e.whole {
		return "every state"
	}
	return "the nearest states"
}

// follow adds the state after a step.
func (e *explorer) follow(after state, from int32, how string, action uint32) {
	after.tidy()
	if from >= 0 && strings.HasPrefix(how, "the second leader") {
		e.noteWrites(&after, &e.nodes[from].state)
	}
	e.transitions++
	e.fired[how]++
	e.add(after, from, how, action)
	e.freeze(after, from, how, action)
}

// noteWrites notes which of the second leader's caches do not show what it has written itself.
func (e *explorer) noteWrites(after, before *state) {
	for k := range kinds {
		if after.second.frozen[k] != 0 && before.shown(k) != after.shown(k) {
			after.second.wrote[k] = true
		}
	}
}

// freeze adds the states in which a cache of the second leader does not show what a step has
// changed.
func (e *explorer) freeze(after state, from int32, how string, action uint32) {
	if from < 0 || after.freezes == e.w.freezes {
		return
	}
	before := e.nodes[from].state
	after.freezes++
	for k := range kinds {
		shows := before.shown(k)
		if after.second.frozen[k] != 0 || shows == after.shown(k) {
			continue
		}
		behind := after
		behind.second.frozen[k] = e.number(shows)
		behind.second.wrote[k] = strings.HasPrefix(how, "the second leader")
		e.fired["a cache falls behind"]++
		e.add(behind, from, how+", unseen", action)
	}
}

// seeds are those of the two hashes that tell states apart.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (e *explorer) add(s state, from int32, how string, action uint32) {
	if s.broken.law == noLaw && !s.accountedFor() {
		s.broken = broken{law: lawRecord, storage: s.storage}
	}
	if s.broken.law != noLaw {
		s.broken.leaders, s.broken.late = uint8(e.w.leaders), e.w.late && s.hasLatePod()
	}
	key := [2]uint64{maphash.Comparable(seeds[0], s), maphash.Comparable(seeds[1], s)}
	if _, known := e.reached[key]; known {
		return
	}
	at := int32(len(e.nodes))
	e.reached[key] = struct{}{}
	e.nodes = append(e.nodes, node{state: s, from: from, how: how, action: action})
	if _, known := e.findings[s.broken]; s.broken.law != noLaw && !known {
		e.findings[s.broken] = at
	}
}

// looked is what a decision is made on: what the caches show, and what the API server would if they
// do not prove enough.
type looked struct{ cached, live viewKey }

// decide returns the number of what a leader decides whose caches show this.
func (e *explorer) decide(s *state, frozen [kinds]uint32, wrote [kinds]bool) uint32 {
	live := e.keyOf(s)
	cached, unseen := live, false
	for k := range kinds {
		if frozen[k] != 0 {
			cached.of[k], unseen = frozen[k], unseen || wrote[k]
		}
	}
	if !unseen {
		if id := e.decideOn(looked{cached: cached}); cached == live || decide.IsSafeOnStaleFacts(e.decisions[id].action) {
			return id
		}
	}
	return e.decideOn(looked{cached, live})
}

func (e *explorer) decideOn(l looked) uint32 {
	if id, known := e.decided[l]; known {
		return id
	}
	cached := e.viewOf(l.cached)
	read := cached
	if l.live != (viewKey{}) {
		read = e.viewOf(l.live)
	}
	d := decision{seen: read.merged()}
	var v decide.View
	v, d.action, d.under = e.w.look(&cached, &read, true)
	d.stands = standingOf(v)
	d.seen.static, d.seen.beside = cached.of[ofPVs].static, cached.of[ofPVs].beside // other PVs are found in the cache alone
	if _, launches := d.action.(decide.Launch); launches {
		_, first, _ := e.w.look(&cached, &read, false)
		_, d.awaits = first.(decide.AwaitSlot)
	}
	id := uint32(len(e.decisions))
	e.decisions = append(e.decisions, d)
	e.decided[l] = id
	return id
}

// lead lets the first leader look at the state as it is, and write at once.
func (e *explorer) lead(s state, at int32) {
	id := e.decide(&s, [kinds]uint32{}, [kinds]bool{})
	d := e.decisions[id]
	e.nodes[at].next = id
	e.fired[kind(d.action)]++
	if d.awaits {
		e.fired[kind(decide.AwaitSlot{})]++
	}
	e.write(s, at, id, "the leader")
	if c, confirms := d.action.(decide.Confirm); confirms && deletesPV(c.Run) && e.w.deleteJudged(&s, &d.seen, c.Run) {
		e.follow(s, at, "the leader is killed when it has deleted the PV", id)
	}
}

func (e *explorer) write(s state, at int32, id uint32, who string) {
	if !e.decisions[id].writes() {
		s.idled()
	}
	s.looksAt(&e.decisions[id].seen)
	after, within := e.w.act(s, &e.decisions[id])
	if !within {
		e.ends++
		return
	}
	e.follow(after, at, who, id)
	if _, onRecord := e.decisions[id].action.(decide.ReleaseRecord); after.told && !s.told && s.hard.kills && !onRecord { // or the next leader says it
		after.told = false
		e.follow(after, at, who+" is killed after its write", id)
	}
}

// leadSecond lets the second leader look, or write what it decided when it looked, or lets a cache
// of it catch up.
func (e *explorer) leadSecond(s state, at int32) {
	for k := range kinds {
		if s.second.frozen[k] != 0 {
			caught := s
			caught.second.frozen[k], caught.second.wrote[k] = 0, false
			e.follow(caught, at, "a cache of the second leader catches up", 0)
		}
	}
	if id := s.second.holds; id != 0 {
		e.writeSecond(s, at, id)
		return
	}
	id := e.decide(&s, s.second.frozen, s.second.wrote)
	if !e.decisions[id].writes() {
		return
	}
	s.second.holds = id
	e.follow(s, at, "the second leader looks", id)
}

// writeSecond lets the second leader write. When it confirms a reclaim it may pause once more
// between its two writes.
func (e *explorer) writeSecond(s state, at int32, id uint32) {
	d, half := &e.decisions[id], s.second.deleted
	c, confirms := d.action.(decide.Confirm)
	if confirms && deletesPV(c.Run) && !half {
		paused := s
		if e.w.deleteJudged(&paused, &d.seen, c.Run) {
			paused.second.deleted = true
			e.follow(paused, at, "the second leader deletes the PV and pauses", id)
		}
	}
	s.second.holds, s.second.deleted = 0, false
	if !half {
		e.write(s, at, id, "the second leader writes")
		return
	}
	ungate(&s, &d.seen, c.Run)
	e.follow(s, at, "the second leader removes the gate", id)
}

// kind returns the name of an action's type.
func kind(a decide.Action) string { return strings.TrimPrefix(fmt.Sprintf("%T", a), "decide.") }

// trace returns the steps to a state, one a line.
func (e *explorer) trace(to int32, then []string) string {
	var lines []string
	for at := to; at >= 0; at = e.nodes[at].from {
		n := e.nodes[at]
		line := n.how
		if n.action != 0 {
			line += ": " + brief(e.decisions[n.action].action)
		}
		lines = append([]string{line}, lines...)
	}
	lines = append(lines, then...)
	for i := range lines {
		lines[i] = fmt.Sprintf("%4d. %s", i, lines[i])
	}
	return strings.Join(lines, "\n")
}

// depth returns how many steps the last state is from the first.
func (e *explorer) depth() int {
	n := 0
	for at := int32(len(e.nodes) - 1); at >= 0; at = e.nodes[at].from {
		n++
	}
	return n
}

func lines(trace string) int { return strings.Count(trace, "\n") }

// brief returns an action in a few words.
func brief(action decide.Action) string {
	switch a := any(action).(type) {
	case decide.Launch:
		return fmt.Sprintf("Launch %s %d, undo %t", a.Verb, a.Number, a.Undo)
	case decide.Wait:
		return "Wait: " + a.Why
	case decide.ReportProblem:
		return "ReportProblem: " + a.Problem.Reason
	case decide.Cancel, decide.RecordOutcome, decide.ReleaseRecord, decide.AnnounceReschedule:
		return kind(action) + " " + short(runOf(action).Name)
	default:
		return kind(action)
	}
}

func short(name string) string { return name[:min(7, len(name))] }
