package controller_test

import (
	"slices"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// mustShow checks the annotations of ours on the claim data.
func (w *world) mustShow(want map[string]string) {
	w.t.Helper()
	for key, value := range want {
		if got := w.now("data").Annotations[contract.Domain+key]; got != value {
			w.t.Errorf("the claim shows %s: %q, want %q", key, got, value)
		}
	}
}

// mustTell checks how often an event was told, and that it has these words.
func (w *world) mustTell(about, reason string, times int, words ...string) {
	w.t.Helper()
	if n := len(w.events.said(about, reason)); n != times {
		w.t.Errorf("%s about %s was told %d times, want %d", reason, about, n, times)
	}
	w.mustHave(about, reason, words)
}

// mustSay checks that an event was told, once or a few times over: what stands in the way of a claim is
// told again whenever the claim is looked at.
func (w *world) mustSay(about, reason string, words ...string) {
	w.t.Helper()
	if n := len(w.events.said(about, reason)); n < 1 || n > 5 {
		w.t.Errorf("%s about %s was told %d times, want one or a few", reason, about, n)
	}
	w.mustHave(about, reason, words)
}

func (w *world) mustHave(about, reason string, words []string) {
	w.t.Helper()
	for _, e := range w.events.said(about, reason) {
		for _, word := range words {
			if !strings.Contains(e.note, word) {
				w.t.Errorf("%s about %s says %q, which lacks %q", reason, about, e.note, word)
			}
		}
	}
}

// mustNotSay checks that no event has these words.
func (w *world) mustNotSay(words string) {
	w.t.Helper()
	for _, e := range w.events.said("", "") {
		if strings.Contains(e.note, words) {
			w.t.Errorf("%s about %s says %q", e.reason, e.about, e.note)
		}
	}
}

// mustRun checks which verbs ran, in order.
func (w *world) mustRun(want ...string) {
	w.t.Helper()
	if got := w.verbs(); !slices.Equal(got, want) {
		w.t.Errorf("ran %v, want %v", got, want)
	}
}

// mustUndo checks that a delete was an undo, with the request of the run that is undone.
func (w *world) mustUndo(undo, undone *run) {
	w.t.Helper()
	if undo.verb != contract.Delete || !undo.request.Undo {
		w.t.Errorf("the undo is %s, FLEX_UNDO %v", undo.verb, undo.request.Undo)
	}
	a, b := undo.request, undone.request
	if a.UID != b.UID || a.Name != b.Name || a.Size != b.Size || a.Class != b.Class || undo.pv.Name != undone.pv.Name {
		w.t.Errorf("undone was %+v with the request %+v", b, a)
	}
}

// mustServeNobody checks that no Job was made.
func (w *world) mustServeNobody() {
	w.t.Helper()
	if len(w.made("")) != 0 {
		w.t.Errorf("%d Jobs before anything could be served", len(w.made("")))
	}
}

// verbs that ran, in order.
func (w *world) verbs() []string {
	var out []string
	for _, r := range w.runs {
		out = append(out, string(r.verb))
	}
	return out
}
