package decide

import "testing"

// everyUnfit: PVs that the claim, while it is there and unbound, can never be bound to, and what is left of
// one that was withdrawn when the claim has gone or found another.
func everyUnfit(t *testing.T, f func(View)) {
	t.Helper()
	cleans, histories := cleanTargets()[:2], buildOnce(t, histories)
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimNotOurs, ClaimPending, ClaimBoundElsewhere} {
		serve, there := Target{}, claim != ClaimGone && claim != ClaimBoundElsewhere
		if claim == ClaimPending {
			serve = targets()[1]
		}
		for _, volume := range unfitVolumes(there) {
			for _, clean := range cleans {
				for _, runs := range histories {
					f(View{Now: now, Claim: claim, Volume: volume, Provision: serve, Delete: clean, Runs: runs})
				}
			}
		}
	}
}

// unfitVolumes are unbound, bound to another claim, or released by one. there: the claim is there and unbound.
func unfitVolumes(there bool) []Volume {
	var out []Volume
	bools := []bool{false, true}
	for _, v := range []Volume{{Unbound: true, NeverBound: true}, {Unbound: true}, {}, {Released: true}, {Released: true, Orphaned: true}} {
		v.Exists, v.UID, v.Mismatch = true, pvUID, "it is too small"
		if !there {
			v.Mismatch, v.NeverBound = "", false
		}
		for _, fault := range []string{"", "it has no claimRef"} {
			for _, reclaim := range bools {
				for _, held := range bools {
					for _, leaving := range bools {
						v.Unproven, v.PolicyDelete, v.HasFinalizer, v.Terminating = fault, reclaim, held, leaving
						out = append(out, v)
					}
				}
			}
		}
	}
	return out
}

// everyStray: a PV under another name may be the UID's, whatever else is known of it.
func everyStray(t *testing.T, f func(View)) {
	t.Helper()
	serve, clean, histories := targets()[1], cleanTargets()[1], buildOnce(t, histories)
	released := Volume{Exists: true, UID: pvUID, Released: true, Orphaned: true, PolicyDelete: true, HasFinalizer: true}
	for _, claim := range []Claim{ClaimGone, ClaimPending, ClaimBoundElsewhere} {
		for _, volume := range []Volume{{}, released} {
			for _, runs := range histories {
				f(View{
					Now: now, Claim: claim, Volume: volume, Provision: serve, Delete: clean, Runs: runs,
					Rival: "another PV carries the UID",
				})
			}
		}
	}
}

func withdrawLaws(out *broken, v View) {
	vol := v.Volume
	out.law("withdrew a PV that serves", vol.Mismatch == "")
	out.law("withdrew a PV that somebody may be bound to", !vol.NeverBound || !vol.Unbound)
	out.law("withdrew a retained PV", !vol.PolicyDelete)
	out.law("withdrew a PV that would go with its volume's name", !vol.HasFinalizer || vol.Terminating)
	out.law("withdrew for a claim that does not ask", v.Claim != ClaimPending)
}
