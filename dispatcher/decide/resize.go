package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Resize is how far a claim's resize is.
type Resize struct {
	Stage ResizeStage
	// Node says who expands the file system to the size of the volume.
	Node NodeWork
}

// ResizeStage is what PV and claim say about a resize. The claim says it by Kubernetes' own values in its status,
// which its user cannot write.
type ResizeStage int

// The stages of a resize.
const (
	ResizeNone       ResizeStage = iota // no claim asks for more, or the claim that does is terminating
	ResizeRequested                     // the volume is smaller than it is to be, and the claim's status does not say that it grows
	ResizeInProgress                    // the claim's status says that the volume grows
	ResizeInfeasible                    // the claim's status says that the volume cannot have the size
	ResizeStored                        // the volume has the size, and the claim's status does not say what is left to do
	ResizeLeftToNode                    // the claim's status says what is left to do on a node
)

// Wanted reports whether the volume is smaller than it is to be.
func (s ResizeStage) Wanted() bool {
	return s == ResizeRequested || s == ResizeInProgress || s == ResizeInfeasible
}

// NodeWork is who expands a file system to the size of its volume.
type NodeWork int

// Who does the work on the node.
const (
	NodeNothing NodeWork = iota // there is nothing to do, or it has been done
	NodeKubelet                 // the kubelet, when the volume is mounted
	NodeByHand                  // an administrator: the kubelet does not expand file systems on such a volume
)

// resizeVolume gives the claim of a proven volume the size that it asks for (requested to infeasible). It returns nil
// if there is nothing to do.
func resizeVolume(v View) Action {
	e, resize := v.Newest(contract.Expand), v.Resize
	if v.Volume.Released {
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
