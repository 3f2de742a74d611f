package decide

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Only a delete of this very volume, or an undo of the newest run, counts, and nothing does while the
// volume is in use.
func TestDeleteFails(t *testing.T) {
	made := recorded(run(contract.Provision, 2), contract.TryAgain, time.Hour)
	deletes := func(attempt int, volume string, after int, verdict contract.Verdict) Run {
		r := recorded(run(contract.Delete, attempt), verdict, time.Minute)
		r.Attempt, r.Volume, r.After = attempt, volume, after
		return r
	}
	released := Volume{State: Fits, UID: "pv", Use: Released}
	for name, tt := range map[string]struct {
		volume Volume
		runs   []Run
		want   bool
	}{
		"an undo, once":                     {Volume{}, []Run{made, deletes(1, "", 2, contract.TryAgain)}, false},
		"an undo, twice":                    {Volume{}, []Run{made, deletes(2, "", 2, contract.TryAgain)}, true},
		"an undo that never started, twice": {Volume{}, []Run{made, deletes(2, "", 2, contract.NotStarted)}, true},
		"an undo that is done":              {Volume{}, []Run{made, deletes(2, "", 2, contract.Done)}, false},
		"the undo of an earlier run":        {Volume{}, []Run{made, deletes(2, "", 1, contract.TryAgain)}, false},
		"a delete, twice":                   {released, []Run{deletes(2, "pv", 0, contract.TryAgain)}, true},
		"the delete of another PV":          {released, []Run{made, deletes(2, "other", 2, contract.TryAgain)}, false},
		"an undo before there was a PV":     {released, []Run{made, deletes(2, "", 2, contract.TryAgain)}, false},
		"a delete, and the PV is in use":    {Volume{State: Fits, UID: "pv", Use: InUse}, []Run{deletes(2, "pv", 0, contract.TryAgain)}, false},
		"no run":                            {Volume{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (View{Now: now, Volume: tt.volume, Runs: tt.runs}).DeleteFails(); got != tt.want {
				t.Errorf("DeleteFails is %t", got)
			}
		})
	}
}

// An expand heals as a delete does. One that makes too little has failed, too: it once went back to the
// revision that cannot expand, and without a pause.
func TestExpandFails(t *testing.T) {
	expand := func(attempt int, revision string, verdict contract.Verdict) Run {
		r := recorded(run(contract.Expand, attempt), verdict, time.Minute)
		r.Attempt, r.Revision = attempt, revision
		return r
	}
	short := expand(1, "today", contract.Done)
	short.Hash = jobs.SizeHash(resource.MustParse("2Gi"))
	short.Outcome.Capacity = new(resource.MustParse("1Gi"))
	inUse := Volume{State: Fits, UID: "pv", Use: InUse}
	for name, tt := range map[string]struct {
		volume Volume
		run    Run
		want   bool
	}{
		"once":                         {inUse, expand(1, "made", contract.TryAgain), false},
		"twice":                        {inUse, expand(2, "made", contract.TryAgain), true},
		"once under the present":       {inUse, expand(1, "today", contract.TryAgain), true},
		"done under the present":       {inUse, expand(1, "today", contract.Done), false},
		"too small, under the present": {inUse, short, true},
		"twice, and it is released":    {Volume{State: Fits, UID: "pv", Use: Released}, expand(2, "made", contract.TryAgain), false},
		"twice, and there is no PV":    {Volume{}, expand(2, "made", contract.TryAgain), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (View{Now: now, Volume: tt.volume, Runs: []Run{tt.run}}).ExpandFails("made"); got != tt.want {
				t.Errorf("ExpandFails is %t", got)
			}
		})
	}
}
