package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// docs/contract.md promises this schedule.
func TestBackoffDoublesToItsCap(t *testing.T) {
	want := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i, seconds := range want {
		if got := backoff(i + 1).Seconds(); got != float64(seconds) {
			t.Errorf("after attempt %d: %v s, want %d s", i+1, got, seconds)
		}
	}
	if got := backoff(1 << 20); got != lastBackoff {
		t.Errorf("after very many attempts: %s", got)
	}
}

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
