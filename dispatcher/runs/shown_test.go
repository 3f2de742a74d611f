package runs

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func TestASuccessOfABatchIsShownLater(t *testing.T) {
	finished := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		uids    int
		attempt int
		since   time.Duration
		want    bool
	}{
		"a moment ago":                 {64, 1, time.Second, true},
		"long ago":                     {64, 1, ShownAfter, false},
		"in a Job of its own":          {1, 1, time.Second, false},
		"after an attempt that failed": {64, 2, time.Second, false},
		"the node's clock is ahead":    {64, 1, -time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Record{UIDs: make([]string, test.uids), Record: jobs.Record{Attempt: test.attempt}}
			now := finished.Add(test.since)
			if got := now.Before(r.ShownFrom(Outcome{Finished: finished}, now)); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
