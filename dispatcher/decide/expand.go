package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
)

// resizeVolume gives the claim of a proven volume the size that it asks for (requested to infeasible). It returns nil
// if there is nothing to do.
func resizeVolume(v View) Action {
	e, resize := v.Newest(contract.Expand), v.Resize
	if v.Volume.Use == Released {
		resize.Stage = ResizeNone // the claim that asked was deleted
	}
	switch {
	case e != nil && e.Grew:
		return SetResizeStage{To: ResizeStored, Run: *e}
	case resize.Stage.Wanted():
		return expandVolume(v, e)
	}
	if action := setResizeStatus(resize); action != nil {
		return action
	}
	if held := v.NewestHeld(contract.Expand); held != nil {
		return ReleaseRecord{Run: *held}
	}
	return nil
}

// setResizeStatus decides about a volume that has the size (stored, left to node). The claim's status says so once
// its file system has the size, too.
func setResizeStatus(g Resize) Action {
	switch {
	case g.Stage == ResizeStored && g.Node != NodeNothing:
		return SetResizeStage{To: ResizeLeftToNode}
	case g.Stage == ResizeStored, g.Stage == ResizeLeftToNode && g.Node == NodeNothing:
		return SetResizeStage{To: ResizeNone}
	default:
		return nil
	}
}

// expandVolume launches an expand (requested, in progress, expanding, infeasible). The claim's status says that the
// volume grows before the first run for it starts. It says that the size is infeasible as long as the newest run
// reports that about this very size.
func expandVolume(v View, e *Run) Action {
	refused := e != nil && e.Outcome.Verdict == contract.BadRequest && !hasChanged(e, v.Expand)
	if refused && v.Resize.Stage != ResizeInfeasible && v.Now.Before(v.dueAfter(e, v.Expand)) {
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
	if _, now := action.(Launch); now && v.Resize.Stage != ResizeInProgress {
		return SetResizeStage{To: ResizeInProgress}
	}
	return action
}
