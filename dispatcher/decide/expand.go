package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
)

// resizeVolume gives the claim of a proven volume the size that it asks for. The claim's status says
// so once its file system has the size, too. It returns nil if there is nothing to do.
func resizeVolume(v View) Action {
	e := v.Newest(contract.Expand)
	switch held := v.NewestHeld(contract.Expand); {
	case v.Resize == ResizeGrown:
		return SetResizeStage{To: ResizeStored, Run: *e}
	case v.Resize.Wanted():
		return expandVolume(v, e)
	case v.Resize == ResizeStored:
		return SetResizeStage{To: ResizeLeftToNode}
	case v.Resize == ResizeDone:
		return SetResizeStage{To: ResizeNone}
	case held != nil:
		return ReleaseRecord{Run: *held}
	default:
		return nil
	}
}

// expandVolume launches an expand. The claim's status says that the volume grows before the first run
// for it starts. It says that the size is infeasible as long as the newest run reports that about
// this very size.
func expandVolume(v View, e *Run) Action {
	if v.isToBeInfeasible(e) {
		return SetResizeStage{To: ResizeInfeasible, Run: *e}
	}
	launch := Launch{Verb: contract.Expand, Number: 1, Attempt: 1}
	if e != nil {
		launch.Number = e.Number + 1
		if !hasChanged(e, v.Expand) {
			launch.Attempt = nextAttempt(e)
		}
	}
	action := launchWhenReady(v, v.Expand, e, launch)
	if _, ok := action.(Launch); ok && v.Resize != ResizeInProgress {
		return SetResizeStage{To: ResizeInProgress}
	}
	return action
}

// isToBeInfeasible reports whether the claim's status is to say that the newest run has refused its size.
// Without a further attempt it must say so at any time: no other size is tried before.
func (v View) isToBeInfeasible(e *Run) bool {
	if e == nil || !saysNotGrown(e.Outcome.Verdict) || hasChanged(e, v.Expand) || v.Resize == ResizeInfeasible {
		return false
	}
	return v.Now.Before(v.dueAfter(e, v.Expand)) || hasExhaustedAttempts(e, v.Expand)
}

// IsInfeasibleWithoutRun reports whether the claim's status says that the volume cannot have the
// size, and no run that is still on record has said so.
func (v View) IsInfeasibleWithoutRun() bool {
	e := v.Newest(contract.Expand)
	return v.Resize == ResizeInfeasible && (e == nil || !saysNotGrown(e.Outcome.Verdict))
}

// saysNotGrown reports whether a verdict of an expand says that this run has not grown the volume:
// it cannot have the size, or there is no room for it. Another request takes effect then. After any
// other verdict the storage may have begun, and a quota counts the size (sizeFor in observe).
func saysNotGrown(verdict contract.Verdict) bool {
	return verdict == contract.BadRequest || verdict == contract.NoCapacity
}
