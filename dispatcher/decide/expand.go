package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Growth is how far a claim has come to the size that it asks for.
type Growth struct {
	Stage Stage
	// Node is who makes the file system as large as the volume.
	Node NodeWork
}

// Stage is what PV and claim say of a growth. The words on the claim are Kubernetes' own, in its status,
// which its user cannot write.
type Stage int

// The stages of a growth.
const (
	GrowthNone    Stage = iota // nobody asks for more, or a claim that does is leaving
	GrowthAsked                // the volume is smaller than it is to be, and the claim does not say that it grows
	GrowthBegun                // the claim says that it grows
	GrowthRefused              // the claim says that it cannot
	GrowthStored               // the volume has the size, and the claim does not say what is left to do
	GrowthLeft                 // the claim says what is left to do on a node
)

// Wanted tells whether the volume is smaller than it is to be.
func (s Stage) Wanted() bool { return s == GrowthAsked || s == GrowthBegun || s == GrowthRefused }

// NodeWork is who makes a file system as large as its volume.
type NodeWork int

// Who does the work on the node.
const (
	NodeNothing NodeWork = iota // there is nothing to do, or it has been done
	NodeKubelet                 // the kubelet, when the volume is mounted
	NodeByHand                  // a person: the kubelet does not grow file systems on such a volume
)

// growing (I to N): gives the claim of a proven volume the size that it asks for. Nil: nothing to do.
func growing(v View) Action {
	e, growth := v.Newest(contract.Expand), v.Growth
	if v.Volume.Released {
		growth.Stage = GrowthNone // whoever asked has gone
	}
	held := e != nil && e.Held
	switch {
	case held && e.Grew:
		return Grow{Run: *e}
	case growth.Stage.Wanted():
		return expanding(v, e)
	}
	if action := telling(growth); action != nil {
		return action
	}
	if held {
		return Release{Run: *e}
	}
	return nil
}

// telling (L, M): the volume has the size; the claim says so when its file system has it, too.
func telling(g Growth) Action {
	switch {
	case g.Stage == GrowthStored && g.Node != NodeNothing:
		return HandOver{}
	case g.Stage == GrowthStored, g.Stage == GrowthLeft && g.Node == NodeNothing:
		return Finish{}
	default:
		return nil
	}
}

// expanding (I, J, K, N): the claim says that it grows before the first run of it starts, and that it
// cannot as long as the newest run says so of this very size.
func expanding(v View, e *Run) Action {
	refused := e != nil && e.Outcome.Verdict == contract.BadRequest && !changed(e, v.Expand)
	if refused && v.Growth.Stage != GrowthRefused && v.Now.Before(due(e, v.Expand)) {
		return Refuse{Run: *e}
	}
	launch := Launch{Verb: contract.Expand, Number: 1, Attempt: 1}
	if e != nil {
		launch.Number = e.Number + 1
		if !changed(e, v.Expand) {
			launch.Attempt = attempt(e)
		}
	}
	action := when(v, v.Expand, e, launch)
	if _, now := action.(Launch); now && v.Growth.Stage != GrowthBegun {
		return Begin{}
	}
	return action
}
