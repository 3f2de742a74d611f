package decide

// unfit (O): the claim waits, and the PV that was written for it can never be bound to it. Without the PV the
// next attempt may do better; with it that would only find it there.
func unfit(v View) Action {
	vol := v.Volume
	released := vol.Released && vol.Orphaned
	switch {
	case v.Claim != ClaimPending:
		return Wait{Why: "the claim asks for nothing now, and its PersistentVolume serves nobody"}
	case vol.Reclaim && (vol.Loose || released):
		return takingBack(v)
	case vol.Loose:
		return Tell{Problem: Problem{Reason: "VolumeInDoubt", Note: vol.Unfit + "; its policy is Retain, so it is kept: " +
			"delete it with its volume, or set its policy to Delete and it is taken back"}}
	default:
		return Tell{Problem: Problem{Reason: "VolumeInDoubt", Note: vol.Unfit + "; it may be in use, so nothing is undone: " +
			"delete whatever uses it, or mend it by hand"}}
	}
}

// takingBack: what is loose goes before its volume does, or it might be bound to a claim meanwhile.
func takingBack(v View) Action {
	if action := followPolicy(v.Volume); action != nil {
		return action
	}
	if v.Volume.Loose && !v.Volume.Leaving {
		return Withdraw{}
	}
	return reclaiming(v)
}

// withdrawn (P): nobody can be bound to the PV any more, and its volume may be half deleted. That goes on
// whatever has become of the claim.
func (v View) withdrawn() bool {
	return v.Volume.Exists && v.Volume.Leaving && v.Volume.Unbound && v.Volume.Reclaim && (v.reclaim() != nil || v.Volume.Loose) &&
		v.Claim != ClaimLeaving
}
