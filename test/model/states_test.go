package model

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// standing is the state of a claim and those of its runs, by the names of their Jobs.
type standing struct {
	claim decide.ClaimState
	runs  map[string]decide.RunState
}

func standingOf(v decide.View) standing {
	s := standing{claim: v.State(), runs: map[string]decide.RunState{}}
	for i := range v.Runs {
		s.runs[v.Runs[i].Name] = v.Runs[i].State()
	}
	return s
}

// move is a step from one named state of a claim or a run to another, and the action of the
// dispatcher that takes it, if one does.
type move struct{ of, from, to, by string }

// addMoves adds the steps by which the states of a claim and of its runs change while no one but
// the user and one leader does anything.
func (e *explorer) addMoves(to map[move]bool) {
	quiet := make([]bool, len(e.nodes))
	for at, n := range e.nodes {
		quiet[at] = n.from < 0 || quiet[n.from] && !strings.HasPrefix(n.how, "the administrator") && !strings.Contains(n.how, " node ")
		if e.w.leaders > 1 || e.w.hard != (hard{}) || n.from < 0 || !quiet[at] || n.next == 0 {
			continue
		}
		before, after, by := e.decisions[e.nodes[n.from].next].stands, e.decisions[n.next].stands, ""
		if n.action != 0 {
			by = kind(e.decisions[n.action].action)
		}
		to[move{"Claim", before.claim.String(), after.claim.String(), by}] = true
		for name, state := range after.runs {
			if was, is := before.runs[name]; is {
				to[move{"Run", was.String(), state.String(), by}] = true
			}
		}
	}
}

// page is the page of the states.
const page = "../../docs/states.md"

// checkStates compares the page of the states with the code and with what the model has found.
func checkStates(t *testing.T, moves map[move]bool) {
	t.Helper()
	code, err := os.ReadFile("../../dispatcher/decide/state.go")
	if err != nil {
		t.Fatal(err)
	}
	text := "# States\n\n" +
		"Of a claim and its Jobs, as `kubectl flex why` prints them. `make golden` makes this page of\n" +
		"[`decide/state.go`](../dispatcher/decide/state.go) and of what the [model](../test/model) finds to\n" +
		"follow on each state while no administrator does anything. An arrow has the actions of the\n" +
		"dispatcher that cause it, if any do.\n"
	text += section("Claim", string(code), "State", func(i int) string { return decide.ClaimState(i).String() }, moves)
	text += section("Run", string(code), "Run", func(i int) string { return decide.RunState(i).String() }, moves)
	fixture.GoldenFile(t, page, []byte(text))
}

// section is a table of states, and a drawing of what follows on each. The comments of the code say
// what they mean.
func section(of, code, prefix string, name func(int) string, moves map[move]bool) string {
	rows, drawn := "", ""
	for i, m := range regexp.MustCompile(`(?m)^\t`+prefix+`[A-Z]\w+ .*// (.*)$`).FindAllStringSubmatch(code, -1) {
		rows += fmt.Sprintf("| %s | %s |\n", name(i), m[1])
		next := map[string][]string{}
		for m := range moves {
			if m.of == of && m.from == name(i) && m.to != m.from {
				next[m.to] = append(next[m.to], m.by)
			}
		}
		for _, to := range slices.Sorted(maps.Keys(next)) {
			by := slices.Sorted(slices.Values(next[to]))
			drawn += strings.TrimRight(fmt.Sprintf("%s --> %s: %s", id(name(i)), id(to), strings.TrimLeft(strings.Join(by, " "), " ")), ": ") + "\n"
		}
	}
	return fmt.Sprintf("\n## %s\n\n| state | meaning |\n|---|---|\n%s\n```mermaid\nstateDiagram-v2\n%s```\n", of, rows, drawn)
}

// id returns a state's name as a drawing has it.
func id(name string) string { return strings.ReplaceAll(name, " ", "_") }
