package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// View is all that is known of one claim's UID.
type View struct {
	Now    time.Time
	Claim  Claim
	Volume Volume
	// Rival tells of a PV under another name that may be the UID's volume, and in use; usually empty.
	Rival string
	// Runs are the UID's Jobs, of any verb and in any order.
	Runs []Run
	// Provision is how the claim would be provisioned now.
	Provision Target
	// Delete is how its volume, or what may have been made, would be deleted.
	Delete Target
	// Resize is what the claim that the volume serves asks for beyond what it has, and Expand how the
	// volume would be given that; its Hash is the size.
	Resize Resize
	Expand Target
}

// Claim is what is left of the claim.
type Claim int

// The states of a claim.
const (
	ClaimGone           Claim = iota // no claim has this UID any more
	ClaimTerminating                 // it has a deletionTimestamp
	ClaimNotOurs                     // not ours, or not yet: another provisioner's, or no node is selected
	ClaimPending                     // ours to provision
	ClaimBound                       // bound to the PV of this UID
	ClaimBoundElsewhere              // bound to another PV
)

// Abandoned tells that no volume of this UID will ever serve the claim.
func (c Claim) Abandoned() bool { return c == ClaimGone || c == ClaimBoundElsewhere }

// Volume is the PV of the UID, found by its name.
type Volume struct {
	Exists bool
	UID    string // the PV's own
	// Unproven is why the PV is no proof of a finished provision; empty: it is one.
	Unproven string
	// Mismatch is why the claim, which is there and unbound, can never be bound to the PV, although that
	// carries its UID; empty of a claim that is bound or has gone: whoever changes a PV in use knows why.
	Mismatch string
	// Unbound: its phase says that no claim is bound to it, nor was. NeverBound: no claim ever can have been.
	Unbound, NeverBound bool
	// Released: its phase is Released or Failed.
	Released bool
	// Orphaned: a live look shows the claim of its claimRef gone or bound elsewhere.
	Orphaned bool
	// PolicyDelete: its reclaim policy is Delete.
	PolicyDelete bool
	HasFinalizer bool // carries our finalizer
	Terminating  bool // has a deletionTimestamp
}

// Proven tells that the PV exists and carries the claim's UID.
func (v Volume) Proven() bool { return v.Exists && v.Unproven == "" }

// Supported tells that it is what the claim asked for as well.
func (v Volume) Fits() bool { return v.Proven() && v.Mismatch == "" }

// Run is one Job of the UID.
type Run struct {
	Name string
	runs.Record
	// Unfinished: some pod of it may still run.
	Unfinished bool
	// Refused is why the PV that the container describes cannot be written; empty: it can, or there is
	// none to write.
	Refused string
	// Terminating: the Job has a deletionTimestamp. PodKept: it has a pod, which stays until it is read.
	Terminating, PodKept bool
	// Stuck is why a live run makes no progress, or nil; Look is when to look again.
	Stuck     *runs.Stuck
	RecheckAt time.Time
	// Outcome of a run that has ended.
	Outcome runs.Outcome
	// Output is what its container said, of a batch to the first who settles it only.
	Output string
	// Grew: after this expand the volume is larger than its PV says. Short: it is smaller than it was
	// to be, whatever the exit code.
	Grew, Short bool
	// Published: the claim's annotations tell this run's result.
	Published bool
	// Reschedule tells how far its claim has come back to the scheduler after it.
	Reschedule RescheduleStage
}

// RescheduleStage is how far a claim has come on its way back to the scheduler, to be given another node.
type RescheduleStage int

// The stages of a return. Between the last two lies one write on the claim: it is made on the claim as it was when
// that was announced, or never, so that no claim is returned twice after one run.
const (
	RescheduleNone      RescheduleStage = iota
	RescheduleAnnounced                 // the run's Job says that the claim, as it is, goes back
	RescheduleDone                      // the claim has changed since: by that, or by somebody else's write
)

// Target is a config that can serve a request, or the reason why none can.
type Target struct {
	// Problem is why nothing can be launched; nil: nothing is in the way.
	Problem *Problem
	// Revision, Hash and Node of the request as it stands now.
	Revision, Hash, Node string
	// HasSlot: of the Jobs that the class may start, the next is this UID's.
	HasSlot bool
	// MaxAttempts of the config; 0: no limit.
	MaxAttempts int
	// RevisionStored: the revision is stored, so that a volume made now can still be deleted when its ConfigMap
	// and its class have gone.
	RevisionStored bool
	// Supported: the image knows the verb.
	Supported bool
	// NodeSelected: the scheduler has chosen the node, and can be asked to choose again. OnSelectedNode: runs go there only.
	NodeSelected, OnSelectedNode bool
	// MissingNode names where a run would have to go, which does not exist any more; IfGone is what to do then.
	MissingNode    string
	NodeGonePolicy config.NodeGone
}

// Problem is what the claim's user or the administrator is told.
type Problem struct {
	Reason string // of the event, in CamelCase
	Note   string // cause and remedy
	// RetryAfter is when to look again, where nothing would tell that the problem has gone; zero: a change will.
	RetryAfter time.Duration
}

// Newest returns the run of a verb with the highest number.
func (v View) Newest(verb contract.Verb) *Run {
	var last *Run
	for i := range v.Runs {
		if r := &v.Runs[i]; r.Verb == verb && (last == nil || r.Number > last.Number) {
			last = r
		}
	}
	return last
}

// nextNumber is the number of the next provision. A delete may have outlived the provision that it came after, and
// must not be taken for the undo of a new one of the same number.
func (v View) nextNumber() int {
	number := 0
	if p := v.Newest(contract.Provision); p != nil {
		number = p.Number
	}
	if d := v.Newest(contract.Delete); d != nil {
		number = max(number, d.After)
	}
	return number + 1
}

// undo returns the newest run that undoes provision p, or nil. The delete of a PV that p wrote is one, too,
// once that PV has gone.
func (v View) undoRun(p *Run) *Run {
	d := v.Newest(contract.Delete)
	if d == nil || d.Volume != "" && v.Volume.Exists || d.After != p.Number {
		return nil
	}
	return d
}

// reclaim returns the newest run that deletes this very PV's volume, or nil. A PV of the same name that
// appeared after an undo has another answer coming.
func (v View) reclaimRun() *Run {
	d := v.Newest(contract.Delete)
	if d == nil || d.Volume == "" || d.Volume != v.Volume.UID {
		return nil
	}
	return d
}

func isDone(r *Run) bool { return r != nil && r.Outcome.Verdict == contract.Done }

// madeNothing: neither this run nor one before it can have left anything in the storage, or that has
// been undone.
func (v View) madeNothing(p *Run) bool {
	return p.NothingBefore && p.Outcome.Verdict.MadeNothing() || isDone(v.undoRun(p))
}
