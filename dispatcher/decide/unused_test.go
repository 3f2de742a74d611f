package decide

import (
	"testing"
	"time"
)

func TestARevisionIsMarkedAndCollectedAnHourLater(t *testing.T) {
	for name, test := range map[string]struct {
		revision Revision
		want     Keeping
	}{
		"in use":                          {Revision{Used: true}, Spare},
		"used again":                      {Revision{Used: true, Marked: now.Add(-time.Minute)}, Unmark},
		"used again at the last moment":   {Revision{Used: true, Marked: now.Add(-time.Hour)}, Unmark},
		"unused":                          {Revision{}, Mark},
		"marked":                          {Revision{Marked: now.Add(-time.Hour + time.Second)}, Await},
		"unused for an hour":              {Revision{Marked: now.Add(-time.Hour)}, Collect},
		"marked by a clock that is ahead": {Revision{Marked: now.Add(time.Minute)}, Await},
	} {
		t.Run(name, func(t *testing.T) {
			got, at := Collected(test.revision, now)
			if got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			if waits := got == Mark || got == Await; waits != at.After(now) {
				t.Errorf("look again at %s", at)
			}
		})
	}
}
