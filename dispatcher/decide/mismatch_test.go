package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// everyMismatch calls f with PVs that the claim, while it exists and is unbound, can never be bound
// to, and with what is left of a PV that was deleted unbound when the claim no longer exists or is
// bound to another PV.
func everyMismatch(t *testing.T, f func(View)) {
	t.Helper()
	deletions, histories := deleteTargets()[:2], buildOnce(t, histories)
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimNotOurs, ClaimPending, ClaimBoundElsewhere} {
		provision, there := Target{}, claim != ClaimGone && claim != ClaimBoundElsewhere
		if claim == ClaimPending {
			provision = provisionTargets()[1]
		}
		for _, volume := range mismatchedVolumes(there) {
			for _, deletion := range deletions {
				for _, runs := range histories {
					f(View{Now: now, Claim: claim, Volume: volume, Provision: provision, Delete: deletion, Runs: runs})
				}
			}
		}
	}
}

// mismatchedVolumes returns PVs that are unbound, bound to another claim, or released by one. The
// claim exists and is unbound if there is set.
func mismatchedVolumes(there bool) []Volume {
	var out []Volume
	bools := []bool{false, true}
	for _, v := range []Volume{{Use: NeverBound}, {Use: Unbound}, {Use: InUse}, {Use: Released}} {
		v.UID = pvUID
		states := []State{Mismatched, Unproven}
		if !there {
			states = []State{Fits, Unproven, Foreign}
			if v.Use == NeverBound {
				continue
			}
		}
		for _, v.State = range states {
			if v.State == Fits {
				v.Why = ""
			} else {
				v.Why = "it is too small"
			}
			for _, policyDelete := range bools {
				for _, finalizer := range bools {
					for _, terminating := range bools {
						v.PolicyDelete, v.HasFinalizer, v.Terminating = policyDelete, finalizer, terminating
						out = append(out, v)
					}
				}
			}
		}
	}
	return out
}

const aRival = "another PV carries the UID"

// everyRival calls f with views in which a PV under another name may stand for the UID's volume. It
// is noted on the records, or nowhere yet.
func everyRival(t *testing.T, f func(View)) {
	t.Helper()
	provision, deletion := provisionTargets()[1], deleteTargets()[1]
	histories := buildOnce(t, func() [][]Run {
		all := histories()
		for _, runs := range histories() {
			for i := range runs {
				runs[i].Rival = "mine"
			}
			all = append(all, runs)
		}
		return all
	})
	released := Volume{State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true}
	retained, unproven := released, released
	retained.PolicyDelete, unproven.State = false, Unproven
	for _, claim := range []Claim{ClaimGone, ClaimPending, ClaimBoundElsewhere} {
		for _, volume := range []Volume{{}, released, retained, unproven} {
			for _, runs := range histories {
				v := View{Now: now, Claim: claim, Volume: volume, Provision: provision, Delete: deletion, Runs: runs, WhyRival: aRival}
				f(v)
				v.Misnamed = true
				f(v)
				v.Misnamed, v.WhyRival = false, ""
				f(v)
			}
		}
	}
}

// everyAttached calls f with released PVs whose volume a node has attached.
func everyAttached(t *testing.T, f func(View)) {
	t.Helper()
	provision, histories := provisionTargets()[1], buildOnce(t, histories)
	for _, claim := range []Claim{ClaimGone, ClaimPending, ClaimBoundElsewhere} {
		for _, volume := range volumes() {
			if volume.Use != Released {
				continue
			}
			for _, at := range []time.Time{now.Add(time.Minute), now} {
				volume.Attached = &Problem{Reason: "VolumeInUse", From: at}
				for _, runs := range histories {
					f(View{Now: now, Claim: claim, Volume: volume, Provision: provision, Delete: deleteTargets()[1], Runs: runs})
				}
			}
		}
	}
}

// everyUnclaimed calls f with PVs whose claim no longer needs them and whose claimRef names no
// claim by its UID.
func everyUnclaimed(t *testing.T, f func(View)) {
	t.Helper()
	histories := buildOnce(t, histories)
	for _, claim := range []Claim{ClaimGone, ClaimBoundElsewhere} {
		for _, volume := range mismatchedVolumes(false) {
			if !volume.IsUnbound() || volume.State != Fits {
				continue
			}
			volume.Why = "its claimRef has no UID"
			for _, volume.Reserved = range []*Problem{nil, {Reason: reason.VolumeInDoubt, From: now.Add(time.Minute)}} {
				for _, runs := range histories {
					f(View{Now: now, Claim: claim, Volume: volume, Delete: deleteTargets()[1], Runs: runs})
				}
			}
		}
	}
}

func deleteUnboundPVLaws(out *broken, v View) {
	vol := v.Volume
	out.law("deleted a PV that fits its claim", vol.State != Mismatched)
	out.law("deleted a PV that a claim may be bound to", vol.Use != NeverBound)
	out.law("deleted a retained PV before its volume", !vol.PolicyDelete)
	out.law("deleted a PV without our finalizer, and with it the name of its volume", !vol.HasFinalizer || vol.Terminating)
	out.law("deleted a PV for a claim that is not pending", v.Claim != ClaimPending)
}

// rivalLaws check that a volume is kept before anything by which it would be forgotten that there
// is a rival.
func rivalLaws(out *broken, v View, action Action) {
	if v.WhyRival == "" || !v.Volume.Proven() || !v.Volume.PolicyDelete || isDone(v.reclaimRun()) {
		return
	}
	switch a := action.(type) { //nolint:gochecksumtype // no other action loses a note
	case ReleaseRecord:
		out.law("released the record before the PV is retained", a.Run.Verb == contract.Provision && !a.Run.Forget)
	case RecordOutcome:
		out.law("released the record before the PV is retained, with its outcome", a.Run.Verb == contract.Provision && a.Release)
	case SetFinalizer:
		out.law("freed a rival before the PV is retained", a.Misnamed)
	}
}

func TestARivalIsNotedOnTheRecordWhereNoPVProvesTheRun(t *testing.T) {
	p := recorded(run(contract.Provision, 1), contract.TryAgain, time.Hour)
	p.Published = true
	noted := p
	noted.Rival = "mine"
	proven := Volume{State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true}
	retained, unproven, foreign := proven, proven, proven
	retained.PolicyDelete, unproven.State, foreign.State = false, Unproven, Foreign
	for name, tt := range map[string]struct {
		volume         Volume
		rival          string
		run            Run
		noted, retains bool
	}{
		"no PV":                              {Volume{}, aRival, p, true, false},
		"no PV, noted":                       {Volume{}, aRival, noted, false, false},
		"a PV":                               {proven, aRival, p, false, true},
		"a PV, no rival":                     {proven, "", p, false, false},
		"a PV, retained":                     {retained, aRival, p, false, false},
		"a PV that proves nothing":           {unproven, "", p, true, false},
		"the same, noted":                    {unproven, "", noted, false, false},
		"a PV of another provisioner":        {foreign, "", p, true, false},
		"a PV that proves nothing, a second": {unproven, aRival, p, true, false},
	} {
		v := View{Now: now, Claim: ClaimGone, Runs: []Run{tt.run}, Volume: tt.volume, Delete: deleteTargets()[1], WhyRival: tt.rival}
		keeps, is := Decide(v).(KeepVolume)
		if is != (tt.noted || tt.retains) || is && (keeps.Run.Name != "") != tt.noted {
			t.Errorf("%s: %#v", name, Decide(v))
		}
	}
	v := View{Now: now, Claim: ClaimGone, Runs: []Run{noted}, Delete: deleteTargets()[1], WhyRival: aRival}
	if got, is := Decide(v).(ReportProblem); !is || !strings.Contains(got.Problem.Note.String(), aRival) || !strings.Contains(got.Problem.Note.String(), "forget") {
		t.Errorf("from then on: %#v", Decide(v))
	}
}
