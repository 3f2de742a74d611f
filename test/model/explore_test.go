package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// second is the second leader: what it is about to write, decided on an earlier state. 0 is nothing.
type second struct{ holds uint32 }

// decision is what was decided on what is visible of a state.
type decision struct {
	seen   state
	action decide.Action
	awaits bool // a slot is awaited before
}

// writes reports whether an action writes anything.
func (d *decision) writes() bool {
	switch any(d.action).(type) {
	case decide.Wait, decide.ReportProblem, decide.AwaitSlot:
		return false
	default:
		return true
	}
}

// node is a state that was reached, and how.
type node struct {
	state  state
	from   int32
	how    string
	action uint32 // the decision that was carried out, if any
}

// explorer visits every state of a world, the nearest first.
type explorer struct {
	w         world
	steps     []step
	nodes     []node
	reached   map[state]int32
	decisions []decision
	decided   map[state]uint32
	whole     bool // every state was visited

	transitions, ends int
	fired             map[string]int
	findings          map[broken]int32
}

func newExplorer(w world) *explorer {
	w.built, w.configs = built{}, map[uint8]config.Config{}
	return &explorer{
		w: w, steps: allSteps(), reached: map[state]int32{}, decisions: make([]decision, 1), decided: map[state]uint32{},
		fired: map[string]int{}, findings: map[broken]int32{},
	}
}

// allSteps are all steps but those of the leaders.
func allSteps() []step { return slices.Concat(kubernetesSteps(), containerSteps(), peopleSteps()) }

// run visits the states, at most as many as the explorer may.
func (e *explorer) run() {
	e.add(e.w.start(), -1, "the user creates the claim", 0)
	for at := int32(0); int(at) < len(e.nodes); at++ {
		if e.w.states > 0 && len(e.nodes) >= e.w.states || e.w.first && len(e.findings) > 0 {
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
	e.transitions++
	e.fired[how]++
	e.add(after, from, how, action)
}

func (e *explorer) add(s state, from int32, how string, action uint32) {
	if s.broken.law != noLaw {
		s.broken.leaders = uint8(e.w.leaders)
	}
	if _, known := e.reached[s]; known {
		return
	}
	at := int32(len(e.nodes))
	e.reached[s] = at
	e.nodes = append(e.nodes, node{s, from, how, action})
	if _, known := e.findings[s.broken]; s.broken.law != noLaw && !known {
		e.findings[s.broken] = at
	}
}

// decide returns the number of what is decided on what is visible of a state.
func (e *explorer) decide(s state) uint32 {
	seen := s.visible()
	if id, known := e.decided[seen]; known {
		return id
	}
	d := decision{seen: seen, action: e.w.look(seen, true)}
	if _, launches := d.action.(decide.Launch); launches {
		_, d.awaits = e.w.look(seen, false).(decide.AwaitSlot)
	}
	id := uint32(len(e.decisions))
	e.decisions = append(e.decisions, d)
	e.decided[seen] = id
	return id
}

// lead lets the first leader look at the state as it is, and write at once.
func (e *explorer) lead(s state, at int32) {
	id := e.decide(s)
	d := e.decisions[id]
	e.fired[kind(d.action)]++
	if d.awaits {
		e.fired[kind(decide.AwaitSlot{})]++
	}
	e.write(s, at, id, "the leader")
}

func (e *explorer) write(s state, at int32, id uint32, who string) {
	s.looked()
	after, within := e.w.act(s, e.decisions[id].seen, e.decisions[id].action)
	if !within {
		e.ends++
		return
	}
	e.follow(after, at, who, id)
}

// leadSecond lets the second leader look, or write what it decided when it looked.
func (e *explorer) leadSecond(s state, at int32) {
	if id := s.second.holds; id != 0 {
		s.second.holds = 0
		e.write(s, at, id, "the second leader writes")
		return
	}
	id := e.decide(s)
	if !e.decisions[id].writes() {
		return
	}
	s.second.holds = id
	s.looked()
	e.follow(s, at, "the second leader looks", id)
}

// kind returns the name of an action's type.
func kind(a decide.Action) string { return strings.TrimPrefix(fmt.Sprintf("%T", a), "decide.") }

// trace returns the steps to a state, one a line.
func (e *explorer) trace(to int32) string {
	var lines []string
	for at := to; at >= 0; at = e.nodes[at].from {
		n := e.nodes[at]
		line := n.how
		if n.action != 0 {
			line += ": " + brief(e.decisions[n.action].action)
		}
		lines = append([]string{line}, lines...)
	}
	for i := range lines {
		lines[i] = fmt.Sprintf("%4d. %s", i, lines[i])
	}
	return strings.Join(lines, "\n")
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
	case decide.Cancel, decide.RemovePodFinalizer, decide.RecordOutcome, decide.ReleaseRecord, decide.AnnounceReschedule:
		return kind(action) + " " + runOf(action).Name[:7]
	default:
		return kind(action)
	}
}
