package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// world plays Kubernetes and an image that succeeds from now on.
type world struct {
	v   View
	log []Action
	// asked: the scheduler is to choose a node for the claim.
	asked bool
}

// step lets the dispatcher act once; it returns false when it waits for the world.
func (w *world) step() bool {
	action := Decide(w.v)
	w.log = append(w.log, action)
	switch a := action.(type) {
	case Wait:
		if !a.Until.IsZero() {
			w.v.Now = a.Until
			return true
		}
		return false
	case ReportProblem:
		if !a.Until.IsZero() {
			w.v.Now = a.Until
			return true
		}
		return false
	case AwaitSlot:
		return false
	case StoreRevision:
		w.v.Provision.RevisionStored = true
	case Launch:
		w.launch(a)
	case Cancel:
		w.at(a.Run).Terminating = true
	case Waive:
		w.at(a.Run).Waived = true
	case AnnounceReschedule:
		w.at(a.Run).Reschedule = RescheduleAnnounced
	case Reschedule:
		w.giveBack()
	case RemovePodFinalizer:
		w.at(a.Run).PodKept = false
	case CreatePV:
		w.v.Volume = Volume{Exists: true, UID: "new", HasFinalizer: true, PolicyDelete: true}
	case RecordOutcome:
		outcome := a.Run.Outcome
		w.at(a.Run).Recorded = &outcome
	case PublishResult:
		w.at(a.Run).Published = true
	case ReleaseRecord:
		w.at(a.Run).Held = false
	case AddFinalizer:
		w.v.Volume.HasFinalizer = true
	case RemoveFinalizer:
		w.v.Volume.HasFinalizer = false
		if w.v.Volume.Terminating {
			w.v.Volume = Volume{}
		}
	case DeletePV, DeleteUnboundPV:
		w.v.Volume.Terminating = true
	case SetPVCapacity:
		w.grow(w.at(a.Run))
	case SetResizeStatus:
		w.v.Resize.Stage = a.To
		if a.To == ResizeNone {
			w.v.Resize = Resize{}
		}
	}
	return true
}

func (w *world) launch(a Launch) {
	r := Run{Name: jobs.Name(a.Verb, "uid", a.Number), Unfinished: true, Record: runs.Record{
		Verb: a.Verb, Number: a.Number, Attempt: a.Attempt, After: a.After, NothingBefore: a.NothingBefore, Held: true,
		Hash: w.v.Provision.Hash, Revision: w.v.Provision.Revision, Node: w.v.Provision.Node,
	}}
	if a.Verb == contract.Expand {
		r.Hash, r.Revision = w.v.Expand.Hash, w.v.Expand.Revision
	}
	r.AnyNode = a.AnyNode
	if a.Verb == contract.Delete && !a.Undo {
		r.Volume = w.v.Volume.UID
	}
	w.v.Runs = append(w.v.Runs, r)
}

func (w *world) at(r Run) *Run {
	for i := range w.v.Runs {
		if w.v.Runs[i].Name == r.Name {
			return &w.v.Runs[i]
		}
	}
	return nil
}

// turn lets the world make one move; it returns false when it has none left.
func (w *world) turn() bool {
	for i := range w.v.Runs {
		if r := &w.v.Runs[i]; r.Unfinished {
			r.Unfinished = false
			r.Outcome = runs.Outcome{Verdict: contract.Done, Finished: w.v.Now}
			switch {
			case r.Terminating && r.Stuck != nil && r.Stuck.Unstarted:
				r.Outcome.Verdict = contract.NotStarted
			case r.Terminating && r.Stuck != nil && r.Stuck.GiveUp:
				r.Outcome.Verdict, r.Outcome.MayRunUntil = contract.Disrupted, w.v.Now.Add(time.Minute)
			case r.Verb == contract.Provision:
				w.v.Volume = Volume{Exists: true, UID: "new", HasFinalizer: true, PolicyDelete: true}
			case r.Verb == contract.Expand:
				r.Grew = w.v.Resize.Stage.Wanted()
			}
			return true
		}
	}
	for i := range w.v.Runs {
		if r := &w.v.Runs[i]; r.Others.Unrecorded {
			r.Others.Unrecorded = false // the neighbours' outcomes are written, too
			return true
		}
	}
	vol := &w.v.Volume
	switch {
	case vol.Terminating && !vol.HasFinalizer && (vol.Released || vol.Unbound) && (succeededRun(w.v.reclaim()) || w.v.Delete.givenUp() != ""):
		*vol = Volume{}
	case w.v.Claim == ClaimTerminating:
		w.v.Claim, vol.Mismatch, vol.NeverBound = ClaimGone, "", false
	case vol.Exists && w.v.Claim == ClaimPending && vol.Unproven == "" && vol.Mismatch == "":
		w.v.Claim = ClaimBound
	case vol.Exists && !vol.Released && w.v.Claim.Abandoned():
		vol.Released, vol.Orphaned, vol.Unbound, w.v.Resize = true, true, false, Resize{}
	case vol.Exists && vol.Released && !vol.Orphaned && w.v.Claim.Abandoned():
		vol.Orphaned = true
	case !w.v.Provision.HasSlot && w.v.Provision.Problem == nil:
		w.v.Provision.HasSlot = true
	default:
		return w.turnScheduler() || w.turnNode()
	}
	return true
}

// TestEveryViewLeadsToAnEnd starts from every combination of facts and lets the dispatcher and the
// world take turns until neither has a move. Then nothing may be left undone.
func TestEveryViewLeadsToAnEnd(t *testing.T) {
	const enough = 100
	views, bound, emptied := 0, 0, 0
	var runs []Run
	var log []Action
	every(t, func(v View) {
		if v.Delete.Problem != nil || !v.Delete.HasSlot || impossible(v) {
			return
		}
		views++
		w := world{v: v, log: log[:0]}
		w.v.Runs = append(runs[:0], v.Runs...)
		for i := 0; w.step() || w.turn(); i++ {
			if i > enough {
				t.Fatalf("no end in sight; the last actions %#v\nfrom %s\nto %s", w.log[len(w.log)-6:], say(v), say(w.v))
			}
		}
		if wrong := leftUndone(w.v); wrong != "" {
			t.Fatalf("%s\nfrom %s\nto %s", wrong, say(v), say(w.v))
		}
		runs, log = w.v.Runs, w.log // the next view uses their memory
		switch {
		case w.v.Claim == ClaimBound && w.v.Volume.Exists:
			bound++
		case w.v.Claim == ClaimGone && !w.v.Volume.Exists:
			emptied++
		}
	})
	if bound == 0 || emptied == 0 {
		t.Errorf("of %d views %d ended bound and %d empty: the walk has lost its facts", views, bound, emptied)
	}
	t.Logf("%d views, %d ended bound, %d empty", views, bound, emptied)
}

// impossible: Kubernetes has no released PV of a claim that is still bound to it or pending, unless it was
// written for another.
func impossible(v View) bool {
	return (v.Volume.Released || v.Volume.Orphaned) && !v.Claim.Abandoned() && v.Volume.Mismatch == ""
}

// inDoubt: an administrator must look.
func inDoubt(v View) bool {
	vol := v.Volume
	if v.Rival != "" || !v.Delete.Supported {
		return true
	}
	if vol.Mismatch == "" {
		return vol.Unproven != ""
	}
	return !vol.PolicyDelete || !vol.NeverBound && !vol.Orphaned
}

// leftUndone says what an end lacks.
func leftUndone(v View) string {
	exhausted := false
	for i := range v.Runs {
		r := &v.Runs[i]
		if r.Unfinished || r.Recorded == nil {
			return "a run was never settled"
		}
		if r.PodKept {
			return "a pod is kept for nothing"
		}
		exhausted = exhausted || r.Verb == contract.Provision && r.Attempt >= v.Provision.MaxAttempts && v.Provision.MaxAttempts > 0
	}
	switch {
	case v.Claim == ClaimPending && v.Provision.Problem == nil && !exhausted && !inDoubt(v):
		return "a claim that could be served was not"
	case !v.Claim.Abandoned():
		return ungrown(v)
	case v.Volume.Proven() && v.Volume.PolicyDelete && !inDoubt(v):
		return "a volume to be reclaimed stayed"
	}
	for i := range v.Runs {
		if v.Runs[i].Held && !v.Volume.Exists && v.Rival == "" {
			return "a Job is held for nothing"
		}
	}
	return ""
}

// TestBackoffDoublesToItsCap pins the schedule that docs/contract.md promises.
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
