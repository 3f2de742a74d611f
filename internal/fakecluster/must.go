package fakecluster

import (
	"slices"
	"strings"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// MustShow checks the dispatcher's annotations on the claim data.
func (c *Cluster) MustShow(want map[string]string) {
	c.T.Helper()
	for key, value := range want {
		if got := c.Claim("data").Annotations[contract.Domain+key]; got != value {
			c.T.Errorf("the claim shows %s: %q, want %q", key, got, value)
		}
	}
}

// MustEmit checks how often an event was emitted, and that it has these words.
func (c *Cluster) MustEmit(about, reason string, times int, words ...string) {
	c.T.Helper()
	if n := len(c.Events.About(about, reason)); n != times {
		c.T.Errorf("%s about %s was emitted %d times, want %d", reason, about, n, times)
	}
	c.MustContain(about, reason, words)
}

// few is how often an event may be emitted within fewAgainAfter, after which some are repeated.
const (
	few           = 5
	fewAgainAfter = 9 * time.Minute
)

// MustEmitSome checks that an event was emitted, once or a few times over: what stands in the way
// of a claim is emitted again whenever the claim is looked at, and what only an administrator can
// decide about every ten minutes.
func (c *Cluster) MustEmitSome(about, reason string, words ...string) {
	c.T.Helper()
	all := c.Events.About(about, reason)
	tooOften := slices.ContainsFunc(all, func(e Event) bool {
		n := 0
		for _, other := range all {
			if since := other.At.Sub(e.At); since >= 0 && since < fewAgainAfter {
				n++
			}
		}
		return n > few
	})
	if len(all) == 0 || tooOften {
		c.T.Errorf("%s about %s was emitted %d times, want one or a few", reason, about, len(all))
	}
	c.MustContain(about, reason, words)
}

// MustContain checks that every event about an object with a reason has these words.
func (c *Cluster) MustContain(about, reason string, words []string) {
	c.T.Helper()
	for _, e := range c.Events.About(about, reason) {
		for _, word := range words {
			if !strings.Contains(e.Note, word) {
				c.T.Errorf("%s about %s says %q, which lacks %q", reason, about, e.Note, word)
			}
		}
	}
}

// MustNotContain checks that no event about an object of a kind has these words; an empty kind: of
// any.
func (c *Cluster) MustNotContain(kind, words string) {
	c.T.Helper()
	for _, e := range c.Events.About("", "") {
		if strings.HasPrefix(e.About, kind) && strings.Contains(e.Note, words) {
			c.T.Errorf("%s about %s says %q", e.Reason, e.About, e.Note)
		}
	}
}

// MustRun checks which verbs ran, in order.
func (c *Cluster) MustRun(want ...string) {
	c.T.Helper()
	if got := c.Verbs(); !slices.Equal(got, want) {
		c.T.Errorf("ran %v, want %v", got, want)
	}
}

// MustUndo checks that a delete was an undo, with the request of the run that is undone.
func (c *Cluster) MustUndo(undo, undone *Run) {
	c.T.Helper()
	if undo.Verb != contract.Delete || !undo.Request.Undo {
		c.T.Errorf("the undo is %s, FLEX_UNDO %v", undo.Verb, undo.Request.Undo)
	}
	a, b := undo.Request, undone.Request
	if a.UID != b.UID || a.Name != b.Name || a.Size != b.Size || a.Class != b.Class || undo.PV.Name != undone.PV.Name {
		c.T.Errorf("undone was %+v with the request %+v", b, a)
	}
}

// MustCreateNoJob checks that no Job was ever created.
func (c *Cluster) MustCreateNoJob() {
	c.T.Helper()
	if n := len(c.CreatedJobs("")); n != 0 {
		c.T.Errorf("%d Jobs before anything could be served", n)
	}
}
