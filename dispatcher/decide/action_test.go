package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// A Job that is launched on old facts is found out before its pod starts, and a write that names
// the version that was judged is refused.
func TestOnlyWhatIsFoundOutLaterIsSafeOnStaleFacts(t *testing.T) {
	for name, tt := range map[string]struct {
		action Action
		safe   bool
	}{
		"a launch":                             {Launch{Verb: contract.Provision}, true},
		"the launch of an undo":                {Launch{Verb: contract.Delete, Undo: true}, true},
		"a retained PV, and no run is seen":    {SetFinalizer{Remove: true, NeedsLive: true}, false},
		"the undo of a released record":        {Launch{Verb: contract.Delete, Undo: true, NeedsLive: true}, false},
		"a confirmation":                       {Confirm{}, true},
		"a confirmation, live":                 {Confirm{NeedsLive: true}, false},
		"a finalizer removed":                  {SetFinalizer{Remove: true}, true},
		"a volume left behind":                 {SetFinalizer{Remove: true, LeftBehind: "its node"}, false},
		"a success recorded":                   {RecordOutcome{Success: true, Run: Run{Outcome: runs.Outcome{ExitCode: new(int32)}}}, true},
		"a success whose pod is not seen":      {RecordOutcome{Success: true}, false},
		"a failure recorded":                   {RecordOutcome{}, false},
		"a success published":                  {PublishResult{Success: true}, true},
		"a failure published":                  {PublishResult{}, false},
		"a finalizer added":                    {SetFinalizer{}, true},
		"the finalizer of a pod without a Job": {RemovePodFinalizer{}, false},
		"a revision":                           {StoreRevision{}, true},
		"waiting":                              {Wait{}, true},
		"waiting for a slot":                   {AwaitSlot{}, true},
		"a report":                             {ReportProblem{}, true},
		"a Job cancelled":                      {Cancel{}, false},
		"a misnamed PV freed":                  {SetFinalizer{Remove: true, Misnamed: true}, false},
		"a rival noted":                        {KeepVolume{}, true},
		"a Job that a claim does not need":     {Cancel{UnlessNeeded: true}, false},
		"a PV created":                         {CreatePV{}, false},
		"a record released":                    {ReleaseRecord{}, false},
		"a PV deleted":                         {DeletePV{}, false},
		"a capacity":                           {SetResizeStage{To: ResizeStored}, false},
		"the status of a resize":               {SetResizeStage{}, false},
		"a rescheduling":                       {Reschedule{}, false},
		"an announced rescheduling":            {AnnounceReschedule{}, false},
	} {
		if got := IsSafeOnStaleFacts(tt.action); got != tt.safe {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// An undo repeats the request of the newest run that may have made something. The caches keep the
// whole request only of a record that is held.
func TestUndoOfARunWhoseRecordIsReleasedNeedsLiveFacts(t *testing.T) {
	for _, held := range []bool{true, false} {
		first, second := recorded(run(contract.Provision, 1), contract.TryAgain, time.Hour), recorded(run(contract.Provision, 2), contract.TryAgain, time.Hour)
		first.Held, second.Held = true, held
		v := View{Now: now, Claim: ClaimGone, Delete: deleteTargets()[1], Runs: []Run{first, second}}
		action := launchDelete(v, nil, true)
		if launch, launches := action.(Launch); !launches || launch.NeedsLive == held {
			t.Errorf("held %v: %#v", held, action)
		}
	}
}
