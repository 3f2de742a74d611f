package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// releasedVolume is a PV whose volume is to be deleted.
func releasedVolume() Volume {
	return Volume{State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true}
}

// withoutPod returns a delete whose Job has no pod yet.
func withoutPod(of string) Run {
	r := run(contract.Delete, 1)
	r.Volume, r.Unfinished, r.Unstarted = of, true, true
	return r
}

// removal returns the action if it removes our finalizer from the PV.
func removal(action Action) (_ SetFinalizer, removes bool) {
	a, _ := action.(SetFinalizer)
	return a, a.Remove && !a.Misnamed
}

// The write that keeps a volume may hang or fail while the pod that deletes it starts.
func TestADeleteIsCancelledBesideTheWriteThatKeepsItsVolume(t *testing.T) {
	starting := withoutPod(pvUID)
	v := View{Now: now, Volume: releasedVolume(), Delete: deleteTargets()[1], Runs: []Run{starting}, WhyRival: aRival}
	if action := Decide(v); WriteOf(action) != WriteOf(KeepVolume{}) {
		t.Errorf("its own loop: %#v", action)
	}
	if action := ForJob(v, starting.Name); WriteOf(action) != WriteOf(Cancel{Run: starting}) {
		t.Errorf("about the delete: %#v", action)
	}
	if action := ForJob(v, "another"); WriteOf(action) != WriteOf(KeepVolume{}) {
		t.Errorf("about another Job: %#v", action)
	}
	if v.Runs[0].Unstarted = false; WriteOf(ForJob(v, starting.Name)) != WriteOf(KeepVolume{}) {
		t.Error("a delete whose container has started is cancelled")
	}
}

// Its slot is free at once, and not only when its pod is to be confirmed.
func TestDeleteWithoutAPodIsCancelledWhenItsVolumeIsToBeKept(t *testing.T) {
	for name, tt := range map[string]struct {
		run     Run
		change  func(*View)
		cancels bool
	}{
		"its PV is released":           {withoutPod(pvUID), func(*View) {}, false},
		"its PV is retained":           {withoutPod(pvUID), func(v *View) { v.Volume.PolicyDelete = false }, true},
		"its PV is another":            {withoutPod("another"), func(*View) {}, true},
		"its PV was handed on":         {withoutPod(pvUID), func(v *View) { v.Volume.Use = InUse }, true},
		"another PV may stand for it":  {withoutPod(pvUID), func(v *View) { v.WhyRival, v.Volume.PolicyDelete = aRival, false }, true},
		"its own is to be retained":    {withoutPod(pvUID), func(v *View) { v.WhyRival = aRival }, false}, // first
		"and cannot be":                {withoutPod(pvUID), func(v *View) { v.WhyRival, v.Refused = aRival, []string{WriteOf(KeepVolume{})} }, true},
		"an undo":                      {withoutPod(""), func(v *View) { v.Volume = Volume{} }, false},
		"an undo, and there is its PV": {withoutPod(""), func(*View) {}, true},
		"an undo, and another PV may":  {withoutPod(""), func(v *View) { v.WhyRival, v.Volume = aRival, Volume{} }, true},
	} {
		v := View{Now: now, Volume: releasedVolume(), Delete: deleteTargets()[1], Runs: []Run{tt.run}}
		tt.change(&v)
		if _, cancels := Decide(v).(Cancel); cancels != tt.cancels {
			t.Errorf("%s: %#v", name, Decide(v))
		}
	}
}

// kubectl deletes a Job in the background: a gated pod would stay until the Job's deadline, and
// hold up the next run.
func TestAJobThatIsDeletedWithoutItsGatedPodIsCancelled(t *testing.T) {
	for _, stays := range []bool{false, true} {
		r := run(contract.Provision, 1)
		r.Unfinished, r.Unstarted, r.Terminating, r.Void = true, true, true, stays
		v := View{Now: now, Claim: ClaimPending, Provision: deleteTargets()[1], Runs: []Run{r}}
		if _, cancels := Decide(v).(Cancel); cancels != stays {
			t.Errorf("its pod stays: %t: %#v", stays, Decide(v))
		}
	}
}

// A container that has started may have made something, whatever its Job waits for.
func TestAStuckRunThatHasStartedIsWaitedFor(t *testing.T) {
	for _, unstarted := range []bool{false, true} {
		r := run(contract.Provision, 1)
		r.Unfinished, r.Unstarted, r.Idle, r.Stuck = true, unstarted, unstarted, &Problem{Reason: "ImagePullBackOff"}
		v := View{Now: now, Claim: ClaimGone, Delete: deleteTargets()[1], Runs: []Run{r}}
		if _, cancels := Decide(v).(Cancel); cancels != unstarted {
			t.Errorf("unstarted %t: %#v", unstarted, Decide(v))
		}
	}
}

// An event that says that a volume stays would be false where it is undone next.
func TestVolumeOfAnUnprovenPVStaysOnlyWithoutARecord(t *testing.T) {
	for _, held := range []bool{false, true} {
		r := recorded(run(contract.Provision, 1), contract.Done, 0)
		r.Held, r.Rival = held, "its PV"
		v := View{Now: now, Volume: releasedVolume(), Delete: deleteTargets()[1], Runs: []Run{r}}
		v.Volume.State, v.Volume.Why, v.Volume.Terminating = Unproven, "it has no claimRef", true
		a, releases := removal(Decide(v))
		if !releases || (a.LeftBehind == "") != held {
			t.Errorf("its record is held: %t: %#v", held, Decide(v))
		}
	}
}

func TestUnprovenPVIsReleasedByEachRemedyOfItsEvent(t *testing.T) {
	unproven := releasedVolume()
	unproven.State, unproven.Why = Unproven, "it lacks our annotation"
	for name, tt := range map[string]struct {
		change   func(*Volume)
		releases bool
	}{
		"as it is":                           {func(*Volume) {}, false},
		"retained":                           {func(vol *Volume) { vol.PolicyDelete = false }, true},
		"deleted":                            {func(vol *Volume) { vol.Terminating = true }, true},
		"retained, of another provisioner":   {func(vol *Volume) { vol.PolicyDelete, vol.State = false, Foreign }, false},
		"retained, released from us already": {func(vol *Volume) { vol.PolicyDelete, vol.HasFinalizer = false, false }, false},
	} {
		v := View{Now: now, Volume: unproven, Delete: deleteTargets()[1]}
		tt.change(&v.Volume)
		if _, releases := removal(Decide(v)); releases != tt.releases {
			t.Errorf("%s: %#v", name, Decide(v))
		}
	}
}

// Without its PV a run counts as failed, and what a failed run may have made is undone: an
// administrator may have deleted the PV to keep the volume.
func TestARetainedPVGoesAfterTheRecordOfItsProvision(t *testing.T) {
	held, released := recorded(run(contract.Provision, 1), contract.TryAgain, time.Hour), recorded(run(contract.Provision, 1), contract.Done, time.Hour)
	held.Rival, held.Published, released.Published, released.Held = "its PV", true, true, false
	for name, change := range map[string]func(*Volume){
		"it is proven":              func(*Volume) {},
		"it does not fit its claim": func(vol *Volume) { vol.State, vol.Why = Mismatched, "it is too small" },
		"it proves nothing":         func(vol *Volume) { vol.State, vol.Why, vol.Terminating = Unproven, "it lacks our annotation", true },
	} {
		vol := Volume{State: Fits, UID: pvUID, HasFinalizer: true}
		change(&vol)
		v := View{Now: now, Claim: ClaimPending, Volume: vol, Delete: deleteTargets()[1], Runs: []Run{held}}
		_, releases := Decide(v).(ReleaseRecord)
		if _, frees := removal(Decide(v)); releases != (vol.State == Fits) || frees == releases { // what else was there is noted on the record
			t.Errorf("%s, and its provision is on record: %#v", name, Decide(v))
		}
		v.Refused = []string{WriteOf(ReleaseRecord{Run: held})}
		if _, frees := removal(Decide(v)); frees && vol.State == Fits {
			t.Errorf("%s, and the write that releases the record was refused: the PV goes", name)
		}
		v.Runs, v.Refused = []Run{released}, nil
		for _, here := range []bool{false, true} { // a later provision may not be in the caches yet
			v.Volume.RecordReleased = here
			if free, frees := removal(Decide(v)); !frees || free.NeedsLive == here {
				t.Errorf("%s, and the record is released, by this dispatcher %t: %#v", name, here, Decide(v))
			}
		}
	}
}

// The PV controller writes a PV when it binds it, and the claim of it may be seen first. The write of
// another version would be refused.
func TestARetainedPVIsFreedWhenItIsSeenAsBound(t *testing.T) {
	released := recorded(run(contract.Provision, 1), contract.Done, time.Hour)
	released.Published, released.Held = true, false
	for name, tt := range map[string]struct {
		claim       Claim
		use         Use
		terminating bool
		frees       bool
	}{
		"both are seen as bound":     {ClaimBound, InUse, false, true},
		"only the claim is":          {ClaimBound, Unbound, false, false},
		"neither is":                 {ClaimPending, NeverBound, false, false},
		"it was deleted before":      {ClaimBound, Unbound, true, true},
		"the claim no longer exists": {ClaimGone, Unbound, false, true},
	} {
		vol := Volume{State: Fits, UID: pvUID, HasFinalizer: true, RecordReleased: true, Use: tt.use, Terminating: tt.terminating}
		v := View{Now: now, Claim: tt.claim, Volume: vol, Delete: deleteTargets()[1], Runs: []Run{released}}
		if _, frees := removal(Decide(v)); frees != tt.frees {
			t.Errorf("%s: %#v", name, Decide(v))
		}
	}
}

// Once its record is released, a PV that proves nothing is believed. An administrator who sets its
// policy to Delete, as its event says, would have its volume deleted under the config revision that
// whoever wrote the PV chose.
func TestRecordStaysAsLongAsARetainedPVContradictsIt(t *testing.T) {
	p := recorded(run(contract.Provision, 1), contract.Done, time.Hour)
	p.Published, p.Rival = true, "its PV"
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimNotOurs, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
		for _, terminating := range []bool{false, true} {
			vol := Volume{State: Unproven, UID: pvUID, HasFinalizer: true, Why: "it names another revision", Terminating: terminating}
			v := View{Now: now, Claim: claim, Volume: vol, Delete: deleteTargets()[1], Runs: []Run{p}}
			if _, releases := Decide(v).(ReleaseRecord); releases != (terminating && claim.Abandoned()) {
				t.Errorf("claim %d, terminating %t: %#v", claim, terminating, Decide(v))
			}
		}
	}
}
