package model

import (
	"encoding/json"
	"testing"
)

// What tells two states apart must be seen in their objects: then there is a way back from the
// objects to the state, and the leaders decide on all that the model says is visible.
func TestModelStatesThatDifferHaveObjectsThatDiffer(t *testing.T) {
	t.Parallel()
	for _, w := range worlds(false) {
		if w.leaders == 2 {
			continue
		}
		w.states = 300
		e := newExplorer(w)
		e.run()
		states := map[string]state{}
		for i := range e.nodes {
			s := e.nodes[i].state
			view := e.viewOf(e.keyOf(&s))
			text, err := json.Marshal(e.w.objects(&view))
			if err != nil {
				t.Fatal(err)
			}
			seen := shownState(&view)
			if other, known := states[string(text)]; known && other != seen {
				t.Fatalf("world %q: the objects of these states are the same:\n%+v\n%+v", w.name, other, seen)
			}
			states[string(text)] = seen
		}
		t.Logf("%s: %d states, %d different to see", w.name, len(e.nodes), len(states))
	}
}

// shownState returns a view as one state without what no object says: which run it was whose result
// the claim has, once that run no longer exists.
func shownState(v *view) state {
	s := v.merged()
	if s.published != 0 && s.find(provision, s.published/2) < 0 {
		s.published = 1
	}
	return s
}
