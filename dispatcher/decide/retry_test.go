package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A batch said nothing about this request, so its attempt is not counted.
func TestUnlistedRequestIsRetriedAloneAfterASecond(t *testing.T) {
	r := recorded(run(contract.Provision, 1), contract.Unlisted, time.Second)
	r.Published = true
	v := View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], Delete: deleteTargets()[1], Runs: []Run{r}}
	v.Provision.MaxAttempts = 1
	want := Launch{Verb: contract.Provision, Number: 2, Attempt: 1}
	if got := Decide(v); got != want {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

// A change of the request shortens the longer pause after a refusal, and never the ordinary
// backoff.
func TestAChangedRequestKeepsTheOrdinaryBackoff(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict contract.Verdict
		attempt int
		change  func(*Target)
		want    time.Duration
	}{
		{"refused, unchanged", contract.BadRequest, 1, func(*Target) {}, 10 * time.Minute},
		{"refused, another request", contract.BadRequest, 1, func(t *Target) { t.Hash = "h2" }, time.Second},
		{"refused again, another request", contract.BadRequest, 4, func(t *Target) { t.Hash = "h2" }, 8 * time.Second},
		{"another config", contract.BadConfig, 2, func(t *Target) { t.Revision = "r2" }, 0},
		{"failed, another request", contract.TryAgain, 7, func(t *Target) { t.Hash = "h2" }, 64 * time.Second},
		{"full, another node", contract.NoCapacity, 3, func(t *Target) { t.Node = "n2" }, 4 * time.Second},
		{"disrupted, another request", contract.Disrupted, 9, func(t *Target) { t.Hash = "h2" }, 10 * time.Second},
		{"a hash of another version", contract.BadRequest, 1, func(t *Target) { t.Hash = "9-h1" }, 10 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := recorded(run(contract.Provision, 1), tt.verdict, 0)
			r.Attempt = tt.attempt
			v := View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], Runs: []Run{r}}
			tt.change(&v.Provision)
			if got := v.dueAfter(&r, v.Provision).Sub(now); got != tt.want {
				t.Errorf("the next run is due after %s, want %s", got, tt.want)
			}
		})
	}
}

// Each change begins a new count of attempts. The backoff is that of all the runs that failed one
// after another.
func TestARequestThatChangesAllTheTimeIsBackedOffFrom(t *testing.T) {
	v := View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1]}
	v.Provision.Hash = "next"
	for i := range 10 {
		r := recorded(run(contract.Provision, i+1), contract.TryAgain, 0)
		r.Attempt, r.Published, r.Held = 1, true, i == 9
		v.Runs = append(v.Runs, r)
		want := min(time.Second<<i, 5*time.Minute)
		if got, waits := Decide(v).(Wait); !waits || got.Until.Sub(now) != want {
			t.Errorf("after %d failures: %#v, want to wait for %s", i+1, Decide(v), want)
		}
		v.Now = now.Add(want)
		if got, launches := Decide(v).(Launch); !launches || got.Attempt != 1 {
			t.Errorf("%s after %d failures: %#v, want the first attempt at the new request", want, i+1, Decide(v))
		}
		v.Now = now
	}
}

// docs/contract.md promises this schedule.
func TestBackoffDoublesToItsCap(t *testing.T) {
	want := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i, seconds := range want {
		if got := Exponential(i + 1).Seconds(); got != float64(seconds) {
			t.Errorf("after attempt %d: %v s, want %d s", i+1, got, seconds)
		}
	}
	if got := Exponential(1 << 20); got != 5*time.Minute {
		t.Errorf("after very many attempts: %s", got)
	}
}

// It counts as no attempt. One that is cancelled each time would be launched every second.
func TestARunThatNeverRanIsBackedOffFrom(t *testing.T) {
	for number, want := range map[int]time.Duration{1: time.Second, 3: 4 * time.Second} {
		if got := pauseAfter(contract.NotStarted, 0, number); got != want {
			t.Errorf("after run %d: %s, want %s", number, got, want)
		}
	}
}
