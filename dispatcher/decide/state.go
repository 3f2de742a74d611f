package decide

import "github.com/flex-provisioner/flex-provisioner/contract"

// RunState is how far a run is. Its states are in the order in which a run goes through them.
type RunState int

// The states of a run.
const (
	RunGated    RunState = iota // its pod waits at its gate until the dispatcher confirms the run
	RunStarting                 // no container of it has started, so that it can have done nothing yet
	RunRunning                  // a container of it has started, and no end of it is known
	RunEnded                    // it has ended, and its outcome is not on record
	RunRecorded                 // its outcome is on record, and the record is held
	RunReleased                 // the record is needed no more, and the Job expires
)

var runStates = [...]string{"gated", "starting", "running", "ended", "recorded", "released"}

func (s RunState) String() string { return runStates[s] }

// State returns how far the run is.
func (r *Run) State() RunState {
	switch {
	case r.Gated:
		return RunGated
	case r.Unfinished && r.Unstarted:
		return RunStarting
	case r.Unfinished:
		return RunRunning
	case r.Recorded == nil:
		return RunEnded
	case r.Held:
		return RunRecorded
	default:
		return RunReleased
	}
}

// ClaimState is what is to become of the volume of a UID when every run has ended and is on record.
type ClaimState int

// The states of a claim.
const (
	StateUnserved   ClaimState = iota // no volume is to be made for it: it is not this dispatcher's, waits for a node, or is being deleted
	StateUntouched                    // a volume is to be made for it, and no provision is known
	StateAttempted                    // a provision is known, and there is no PV that proves it
	StateInDoubt                      // its PV does not prove a provision, and keeps every other from being made
	StateMismatched                   // its PV can never be bound to it
	StateDiscarded                    // its PV was deleted before a claim was bound to it: the volume is deleted, then the PV
	StateBinding                      // its PV is proven, and Kubernetes is to bind the two
	StateInUse                        // its PV is proven, and a claim uses the volume
	StateExpanding                    // the volume in use is to have another size
	StateRetained                     // its PV is proven, and has the policy Retain
	StateReclaiming                   // its PV is proven and released: the volume is deleted, then the PV
	StateUndoing                      // the claim needs no volume any more: what a provision may have made is deleted
	StateAbandoned                    // the claim needs no volume any more, and no provision is on record
)

var claimStates = [...]string{
	"unserved", "untouched", "attempted", "in doubt", "mismatched", "discarded", "binding", "in use", "expanding", "retained", "reclaiming",
	"undoing", "abandoned",
}

func (s ClaimState) String() string { return claimStates[s] }

// State returns what is to become of the UID's volume.
func (v View) State() ClaimState {
	switch {
	case v.isDeletedUnbound():
		return StateDiscarded
	case v.Volume.State == Mismatched:
		return StateMismatched
	case v.Volume.State == Fits:
		return v.stateProven()
	default:
		return v.stateUnproven()
	}
}

// stateUnproven returns what is to become of a volume for which no PV stands.
func (v View) stateUnproven() ClaimState {
	switch {
	case v.Claim.Abandoned() && v.NewestHeld(contract.Provision) != nil:
		return StateUndoing
	case v.Claim.Abandoned():
		return StateAbandoned
	case v.Volume.State == Unproven && (v.Claim == ClaimPending || v.Claim == ClaimBound):
		return StateInDoubt
	case v.Claim == ClaimPending && v.Newest(contract.Provision) == nil:
		return StateUntouched
	case v.Claim == ClaimPending:
		return StateAttempted
	default:
		return StateUnserved
	}
}

// stateProven returns what is to become of a volume whose PV proves its provision.
func (v View) stateProven() ClaimState {
	switch {
	case v.Resize != ResizeNone && v.Resize != ResizeLeftToNode:
		return StateExpanding
	case v.Volume.PolicyDelete && v.Volume.Use == Released:
		return StateReclaiming
	case v.Claim == ClaimPending || v.Claim == ClaimNotOurs:
		return StateBinding
	case !v.Volume.PolicyDelete:
		return StateRetained
	default:
		return StateInUse
	}
}
