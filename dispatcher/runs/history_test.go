package runs

import (
	"testing"
	"time"
)

func TestAJobIsKeptUntilItsPodCannotRunAnyMore(t *testing.T) {
	end := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ended := Outcome{Finished: end}
	unreported := func(d time.Duration) Outcome { return Outcome{Finished: end, MayRunUntil: end.Add(d)} }
	for name, tt := range map[string]struct {
		out             Outcome
		held            time.Duration
		succeeded, many bool
		want            time.Duration
	}{
		"a success":                                 {out: ended, succeeded: true, want: 5 * time.Minute},
		"a failure":                                 {out: ended, want: time.Hour},
		"a failure of many":                         {out: ended, many: true, want: 15 * time.Minute},
		"a failure that was held":                   {out: ended, held: 2 * time.Hour, want: 3 * time.Hour},
		"a pod without a report":                    {out: unreported(20 * time.Minute), want: time.Hour},
		"a pod without a report, of many":           {out: unreported(20 * time.Minute), many: true, want: time.Hour},
		"a pod without a report, with a long time":  {out: unreported(2 * time.Hour), many: true, want: 2*time.Hour + 5*time.Minute},
		"a success whose pod still may run, though": {out: unreported(time.Hour), succeeded: true, want: time.Hour + 5*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := KeepFor(tt.out, end.Add(tt.held), tt.succeeded, tt.many); got != tt.want {
				t.Errorf("kept for %s, want %s", got, tt.want)
			}
		})
	}
}
