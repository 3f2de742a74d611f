package decide

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const pvUID = "pv-uid"

// verdicts are every way in which a run ends.
var verdicts = []contract.Verdict{
	contract.Done, contract.BadConfig, contract.BadRequest, contract.NoCapacity, contract.NoCredentials,
	contract.TryAgain, contract.Disrupted, contract.Unknown, contract.NotStarted, contract.Unlisted,
}

// every calls f with every combination of facts. How a claim would be served is known only of one that
// is pending, and what one asks for beyond what it has, of one that is bound: everyGrowth has those.
func every(t *testing.T, f func(View)) {
	t.Helper()
	everyPlain(t, f)
	everyUnfit(t, f)
	everyStray(t, f)
	everyGrowth(t, f)
	everyShared(t, f)
	everyNode(t, f)
}

// buildOnce returns the lists of runs that the views of a walk share: building them for each view costs more than
// deciding. It fails the test when the walk has changed one of them.
func buildOnce(t *testing.T, lists func() [][]Run) [][]Run {
	t.Helper()
	out := lists()
	t.Cleanup(func() {
		if !reflect.DeepEqual(out, lists()) {
			t.Error("the walk has changed runs that its views share")
		}
	})
	return out
}

func everyPlain(t *testing.T, f func(View)) {
	t.Helper()
	volumes, cleans, histories := volumes(), cleanTargets(), buildOnce(t, histories)
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimNotOurs, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
		serves := []Target{{}}
		if claim == ClaimPending {
			serves = targets()
		}
		for _, volume := range volumes {
			for _, serve := range serves {
				for _, clean := range cleans {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Provision: serve, Delete: clean, Runs: runs})
					}
				}
			}
		}
	}
}

func volumes() []Volume {
	out := []Volume{{}, {Exists: true, UID: pvUID, Unproven: "it lacks our annotation", HasFinalizer: true, PolicyDelete: true}}
	bools := []bool{false, true}
	for _, released := range bools {
		for _, orphaned := range bools {
			if orphaned && !released {
				continue // only a released PV is looked at so closely
			}
			for _, reclaim := range bools {
				for _, held := range bools {
					for _, leaving := range bools {
						out = append(out, Volume{
							Exists: true, UID: pvUID,
							Released: released, Orphaned: orphaned, PolicyDelete: reclaim, HasFinalizer: held, Terminating: leaving,
						})
					}
				}
			}
		}
	}
	return out
}

func targets() []Target {
	return []Target{
		{Problem: &Problem{Reason: "WaitingForConfig"}},
		{Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true},
		{Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, Supported: true},
		{Revision: "r1", Hash: "h1", Node: "n1", HasSlot: true, Supported: true, MaxAttempts: 2},
		{Revision: "r1", Hash: "h2", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true, MaxAttempts: 2},
		{Revision: "r2", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true},
		{Revision: "r1", Hash: "h1", Node: "n2", RevisionStored: true, HasSlot: true, Supported: true},
	}
}

func cleanTargets() []Target {
	return []Target{
		{Problem: &Problem{Reason: "RevisionMissing"}},
		{RevisionStored: true, HasSlot: true, Supported: true},
		{RevisionStored: true, Supported: true},
		{RevisionStored: true, HasSlot: true},
	}
}

// histories are lists of runs: none; one provision in every state, alone or with an older one still
// held; a provision that has ended with a delete after it, for an undo or for the PV; a delete alone.
func histories() [][]Run {
	out := [][]Run{nil}
	older := settled(run(contract.Provision, 1), contract.TryAgain, time.Hour)
	for _, p := range ends(run(contract.Provision, 2), verdicts) {
		out = append(out, []Run{p})
		if p.Published {
			out = append(out, []Run{older, p})
		}
	}
	main := []contract.Verdict{contract.Done, contract.BadConfig, contract.TryAgain}
	for _, volume := range []string{"", pvUID} {
		d := run(contract.Delete, 1)
		d.After, d.Volume = 2, volume
		for _, d := range ends(d, main) {
			if d.Published && d.Held {
				continue // nothing of a delete is shown
			}
			out = append(out, []Run{d})
			for _, p := range ends(run(contract.Provision, 2), main) {
				if p.Published && p.Outcome.Finished.Equal(now) {
					out = append(out, []Run{p, d})
				}
			}
		}
	}
	return out
}

func run(verb contract.Verb, number int) Run {
	return Run{Name: jobs.Name(verb, "uid", number), Record: runs.Record{
		Verb: verb, Number: number, Attempt: number, Hash: "h1", Revision: "r1", Node: "n1", Held: true, NothingBefore: number == 1,
	}}
}

func settled(r Run, v contract.Verdict, ago time.Duration) Run {
	r.Outcome = runs.Outcome{Verdict: v, Finished: now.Add(-ago)}
	r.Recorded = &r.Outcome
	return r
}

// ends are all that may have become of a run: it runs; it ended a moment or an hour ago, settled or
// not, shown or not, clean before or not, held or released.
func ends(r Run, verdicts []contract.Verdict) []Run {
	live := r
	live.Unfinished = true
	out := []Run{live}
	for _, trouble := range []runs.Stuck{
		{Reason: "Unschedulable", Note: "no node takes its pod", Unstarted: true},
		{Reason: "JobSuspended", Note: "for too long", Unstarted: true, GiveUp: true},
		{Reason: "WaitingForNode", Note: "its node does not answer", NodeLost: true},
		{Reason: "WaitingForNode", Note: "its pod was deleted by force", NodeLost: true, GiveUp: true},
	} {
		for _, state := range [][2]bool{{false, false}, {true, false}, {true, true}, {false, true}} {
			next := live
			next.Stuck, next.PodKept, next.Terminating = &trouble, state[0], state[1]
			out = append(out, next)
		}
	}
	for _, v := range verdicts {
		fresh := settled(r, v, 0)
		fresh.Recorded = nil
		out = append(out, fresh)
		fresh.DescribesPV = true
		out = append(out, fresh)
		fresh.Refused = "it describes nothing"
		out = append(out, fresh)
		for _, ago := range []time.Duration{0, time.Hour} {
			s := settled(r, v, ago)
			out = append(out, s)
			s.Published = true
			out = append(out, s)
			if v == contract.Disrupted && ago == 0 {
				unseen := s
				unseen.Outcome.MayRunUntil = now.Add(time.Minute)
				out = append(out, unseen)
			}
			s.NothingBefore = true
			out = append(out, s)
			s.Held = false
			out = append(out, s)
		}
	}
	return out
}

// say tells a view in a failure's message.
func say(v View) string {
	text := fmt.Sprintf("claim %d, volume %+v, serve %+v, clean %+v, growth %+v, expand %+v", v.Claim, v.Volume, v.Provision, v.Delete, v.Resize, v.Expand)
	for _, r := range v.Runs {
		text += fmt.Sprintf("\n  %s live=%t settled=%t held=%t shown=%t clean=%t after=%d volume=%q %s waived=%t others=%+v",
			r.Name, r.Unfinished, r.Recorded != nil, r.Held, r.Published, r.NothingBefore, r.After, r.Volume, r.Outcome.Verdict, r.Waived, r.Others)
	}
	return text
}

// TestEveryViewKeepsTheLaws walks every combination of facts and asserts what must hold in each.
func TestEveryViewKeepsTheLaws(t *testing.T) {
	views, launches := 0, 0
	var out broken
	every(t, func(v View) {
		views++
		action := Decide(v)
		if laws(&out, v, action); len(out) > 0 {
			t.Fatalf("%s\naction %#v\n%s", out, action, say(v))
		}
		if _, ok := action.(Launch); ok {
			launches++
		}
	})
	if views < 100_000 || launches < 1000 {
		t.Errorf("walked only %d views with %d launches: the walk has lost its facts", views, launches)
	}
	t.Logf("%d views, %d launches", views, launches)
}

// broken lists the laws that an action breaks, named by what would be wrong.
type broken []string

func (b *broken) law(wrong string, is bool) {
	if is {
		*b = append(*b, wrong)
	}
}

func laws(out *broken, v View, action Action) {
	out.law("no action", action == nil)
	switch a := action.(type) {
	case Launch:
		launchLaws(out, v, a)
	case Cancel:
		cancelLaws(out, v, a)
	case RemovePodFinalizer:
		out.law("let a pod go unread", a.Run.Unfinished || a.Run.Recorded == nil)
	case CreatePV:
		out.law("wrote a PV over another", v.Volume.Exists)
		out.law("wrote a PV that nobody asks for", v.Claim != ClaimPending)
		out.law("wrote a PV after a failure", a.Run.Unfinished || a.Run.Outcome.Verdict != contract.Done || a.Run.Refused != "")
	case AnnounceReschedule:
		announceLaws(out, v, a)
	case Reschedule:
		rescheduleLaws(out, v)
	case RecordOutcome:
		out.law("success without a PV that carries the UID", a.Success && a.Run.Verb == contract.Provision && !v.Volume.Fits())
		out.law("success of an expand that made too little", a.Success && a.Run.Short)
		out.law("settled a run that has not ended", a.Run.Unfinished)
		out.law("settled twice", a.Run.Recorded != nil)
	case PublishResult:
		out.law("success shown without a PV that carries the UID", a.Success && !v.Volume.Fits())
		out.law("shown on a claim that is gone", v.Claim == ClaimGone)
	case ReleaseRecord:
		releaseLaws(out, v, a)
		if v.Delete.Supported {
			forgetLaws(out, v, a.LeftBehind)
		}
	case AddFinalizer:
		out.law("finalizer on a retained PV", !v.Volume.PolicyDelete)
		out.law("finalizer on a leaving PV", v.Volume.Terminating)
	case RemoveFinalizer:
		out.law("let go of a PV whose volume was not deleted", v.Volume.PolicyDelete && !succeededRun(v.reclaim()) && a.LeftBehind == "")
		forgetLaws(out, v, a.LeftBehind)
	case SetResizeStatus:
		resizeStatusLaws(out, v, a)
	case SetPVCapacity:
		out.law("a PV that shrinks, or says what is not so", !a.Run.Grew || a.Run.Outcome.Verdict != contract.Done)
	case DeleteUnboundPV:
		withdrawLaws(out, v)
	case DeletePV:
		out.law("removed a PV whose volume was not deleted", !succeededRun(v.reclaim()) && v.Delete.givenUp() == "")
		out.law("removed a PV in use", !v.Volume.Released || !v.Volume.Orphaned)
		out.law("removed a retained PV", !v.Volume.PolicyDelete)
	case Wait:
		out.law("silent about a Job that makes no progress", stuck(v) && a.Until.IsZero())
	case AwaitSlot:
		queueLaws(out, v, a)
	case ReportProblem, StoreRevision, Waive:
	}
	shareLaws(out, v, action)
	if growth(action) {
		growthLaws(out, v, action)
	}
}

func stuck(v View) bool {
	for i := range v.Runs {
		if r := &v.Runs[i]; r.Unfinished && r.Stuck != nil {
			return true
		}
	}
	return false
}

func launchLaws(out *broken, v View, a Launch) {
	out.law("deleted what another PV may be", a.Verb == contract.Delete && v.Rival != "")
	nodeLaws(out, v, a)
	forgetLaws(out, v, a.LeftBehind)
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("two live Jobs of one UID", r.Unfinished)
		out.law("launched over an unsettled run", r.Recorded == nil)
		out.law("launched while a pod that nobody sees may run", v.Now.Before(r.Outcome.MayRunUntil))
		out.law("a name used twice", r.Verb == a.Verb && r.Number >= a.Number)
	}
	switch {
	case a.Verb == contract.Expand:
		expandLaws(out, v)
	case a.Verb == contract.Provision:
		p := v.Newest(contract.Provision)
		out.law("provisioned for a claim that does not ask", v.Claim != ClaimPending)
		out.law("provisioned what exists", v.Volume.Proven() || v.Volume.Mismatch != "")
		out.law("launched without a config", v.Provision.Problem != nil)
		out.law("launched without a stored revision", !v.Provision.RevisionStored)
		out.law("launched beyond max-parallel", !v.Provision.HasSlot)
		out.law("moved on without an undo", p != nil && targetMoved(p, v.Provision) && !v.madeNothing(p) && v.Delete.Supported && a.LeftBehind == "")
		out.law("called clean what is not", a.NothingBefore && p != nil && !v.madeNothing(p))
		out.law("too soon", p != nil && v.Now.Before(v.due(p, v.Provision)))
	case a.Undo:
		out.law("undid what is proven", v.Volume.Proven())
		out.law("undid for a claim that is served", v.Claim != ClaimGone && v.Claim != ClaimBoundElsewhere && v.Claim != ClaimPending)
		out.law("undid nothing", v.Newest(contract.Provision) == nil)
		out.law("undid without the verb delete", !v.Delete.Supported)
		out.law("undid under a PV that may be in use", v.Volume.Exists)
	default:
		out.law("deleted without the verb delete", !v.Delete.Supported)
		withdrawn := v.Volume.Unbound && v.Volume.Terminating
		out.law("deleted a volume in use", !withdrawn && (!v.Volume.Released || !v.Volume.Orphaned))
		out.law("deleted what somebody may be bound to", withdrawn && !v.Volume.NeverBound && v.reclaim() == nil)
		out.law("deleted a retained volume", !v.Volume.PolicyDelete)
		// A PV that is leaving takes no finalizer any more, and its volume must not stay behind.
		out.law("deleted without our finalizer on the PV", !v.Volume.HasFinalizer && !v.Volume.Terminating)
	}
}
