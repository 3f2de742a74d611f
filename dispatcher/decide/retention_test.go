package decide

import (
	"testing"
	"time"
)

func TestUnusedRevisionIsMarkedAndCollectedAnHourLater(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		revision Revision
		want     RevisionAction
	}{
		"in use":                          {Revision{Used: true}, KeepUnchanged},
		"in use, with an outdated note":   {Revision{Used: true, Outdated: true}, NoteTrash},
		"unused, with an outdated note":   {Revision{Outdated: true}, MarkUnused},
		"used again":                      {Revision{Used: true, Marked: now.Add(-time.Minute)}, UnmarkUnused},
		"used again at the last moment":   {Revision{Used: true, Marked: now.Add(-time.Hour)}, UnmarkUnused},
		"unused":                          {Revision{}, MarkUnused},
		"marked":                          {Revision{Marked: now.Add(-time.Hour + time.Second)}, AwaitUnused},
		"unused for an hour":              {Revision{Marked: now.Add(-time.Hour)}, DeleteUnused},
		"marked by a clock that is ahead": {Revision{Marked: now.Add(time.Minute)}, AwaitUnused},
	} {
		t.Run(name, func(t *testing.T) {
			got, at := DecideRevision(test.revision, now)
			if got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			if waits := got == MarkUnused || got == AwaitUnused; waits != at.After(now) {
				t.Errorf("recheck at %s", at)
			}
		})
	}
}
