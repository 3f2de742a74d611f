package decide

import "github.com/flex-provisioner/flex-provisioner/contract"

// With write-pv: dispatcher the container only says where the volume is, and the dispatcher creates the PV.

// describesPV reports whether the dispatcher is to create the PV that a run has described: the config leaves it to
// the dispatcher, and the claim still needs the volume.
func describesPV(v View, r Run) bool {
	return r.DescribesPV && r.Verb == contract.Provision && r.Outcome.Verdict == contract.Done && r.Refused == "" &&
		!v.Volume.Exists && v.Claim == ClaimPending
}

// createDescribed creates the PV that is on record as described, whatever has become of the claim and its config: another leader may be about
// to create it, and the claim would be bound to a volume that was undone meanwhile. A volume that is not needed any more is reclaimed by its
// PV. Once the PV exists it is the record: it would be created once more after it was deleted.
func createDescribed(v View) Action {
	for i := range v.Runs {
		r := &v.Runs[i]
		switch {
		case !v.hasDescribed(r):
		case !v.Volume.Exists:
			return CreatePV{Run: *r}
		case v.Volume.Fits(), v.Volume.Proven() && v.Volume.Terminating && v.Volume.HasFinalizer: // it stays until its volume has been deleted
			return ReleaseRecord{Run: *r}
		}
	}
	return nil
}

// hasDescribed reports whether the PV is to be created that a run has described: its volume is neither undone nor that of a later run.
func (v View) hasDescribed(r *Run) bool {
	last := v.newestConfirmed(contract.Provision)
	return r.Described != "" && v.isRecord(r) && r.Refused == "" && v.undoRun(r) == nil && (last == nil || last.Number <= r.Number)
}
