package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Resize is how far a claim has come to the size that it asks for.
type Resize struct {
	Stage ResizeStage
	// Node is who makes the file system as large as the volume.
	Node NodeWork
}

// ResizeStage is what PV and claim say of a growth. The words on the claim are Kubernetes' own, in its status,
// which its user cannot write.
type ResizeStage int

// The stages of a growth.
const (
	ResizeNone       ResizeStage = iota // nobody asks for more, or a claim that does is leaving
	ResizeRequested                     // the volume is smaller than it is to be, and the claim does not say that it grows
	ResizeInProgress                    // the claim says that it grows
	ResizeInfeasible                    // the claim says that it cannot
	ResizeStored                        // the volume has the size, and the claim does not say what is left to do
	ResizeLeftToNode                    // the claim says what is left to do on a node
)

// Wanted tells whether the volume is smaller than it is to be.
func (s ResizeStage) Wanted() bool {
	return s == ResizeRequested || s == ResizeInProgress || s == ResizeInfeasible
}

// NodeWork is who makes a file system as large as its volume.
type NodeWork int

// Who does the work on the node.
const (
	NodeNothing NodeWork = iota // there is nothing to do, or it has been done
	NodeKubelet                 // the kubelet, when the volume is mounted
	NodeByHand                  // a person: the kubelet does not grow file systems on such a volume
)

// resizing (I to N): gives the claim of a proven volume the size that it asks for. Nil: nothing to do.
func resizeVolume(v View) Action {
	e, growth := v.Newest(contract.Expand), v.Resize
	if v.Volume.Released {
		growth.Stage = ResizeNone // whoever asked has gone
	}
	held := e != nil && e.Held
	switch {
	case held && e.Grew:
		return SetPVCapacity{Run: *e}
	case growth.Stage.Wanted():
		return expandVolume(v, e)
	}
	if action := setResizeStatus(growth); action != nil {
		return action
	}
	if held {
		return ReleaseRecord{Run: *e}
	}
	return nil
}

// resizeStatus (L, M): the volume has the size; the claim says so when its file system has it, too.
func setResizeStatus(g Resize) Action {
	switch {
	case g.Stage == ResizeStored && g.Node != NodeNothing:
		return SetResizeStatus{To: ResizeLeftToNode}
	case g.Stage == ResizeStored, g.Stage == ResizeLeftToNode && g.Node == NodeNothing:
		return SetResizeStatus{To: ResizeNone}
	default:
		return nil
	}
}

// expanding (I, J, K, N): the claim says that it grows before the first run of it starts, and that it
// cannot as long as the newest run says so of this very size.
func expandVolume(v View, e *Run) Action {
	refused := e != nil && e.Outcome.Verdict == contract.BadRequest && !hasChanged(e, v.Expand)
	if refused && v.Resize.Stage != ResizeInfeasible && v.Now.Before(dueAfter(e, v.Expand)) {
		return SetResizeStatus{To: ResizeInfeasible, Run: *e}
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
		return SetResizeStatus{To: ResizeInProgress}
	}
	return action
}
