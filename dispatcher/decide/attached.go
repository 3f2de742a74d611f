package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// reportAttached is for how long an attachment of a released PV is nothing to report: kubelet and attacher need a while.
const reportAttached = time.Minute

// awaitDetach waits until no node has the volume of a released PV attached, and reports after a while which one has it.
func (v View) awaitDetach() Action {
	if v.Volume.Attached == nil {
		return nil
	}
	if tell := v.Volume.ReleasedAt.Add(reportAttached); v.Now.Before(tell) {
		return Wait{Until: tell, Why: "the volume is still attached"}
	}
	return ReportProblem{Problem: *v.Volume.Attached}
}

// deletesAttached reports whether a run would delete the volume of a PV that is still attached.
func (v View) deletesAttached(r Run) bool {
	return v.Volume.Attached != nil && r.Verb == contract.Delete && !r.IsUndo()
}
