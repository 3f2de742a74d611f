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
	// Stray tells of a PV under another name that may be the UID's volume, and in use; usually empty.
	Stray string
	// Runs are the UID's Jobs, of any verb and in any order.
	Runs []Run
	// Serve is how the claim would be provisioned now.
	Serve Target
	// Clean is how its volume, or what may have been made, would be deleted.
	Clean Target
	// Growth is what the claim that the volume serves asks for beyond what it has, and Expand how the
	// volume would be given that; its Hash is the size.
	Growth Growth
	Expand Target
}

// Claim is what is left of the claim.
type Claim int

// The states of a claim.
const (
	ClaimGone      Claim = iota // no claim has this UID any more
	ClaimLeaving                // it has a deletionTimestamp
	ClaimNotOurs                // not ours, or not yet: another provisioner's, or no node is selected
	ClaimPending                // ours to provision
	ClaimBound                  // bound to the PV of this UID
	ClaimElsewhere              // bound to another PV
)

// Abandoned tells that no volume of this UID will ever serve the claim.
func (c Claim) Abandoned() bool { return c == ClaimGone || c == ClaimElsewhere }

// Volume is the PV of the UID, found by its name.
type Volume struct {
	Exists bool
	UID    string // the PV's own
	// Fault is why the PV is no proof of a finished provision; empty: it is one.
	Fault string
	// Unfit is why the claim, which is there and unbound, can never be bound to the PV, although that
	// carries its UID; empty of a claim that is bound or has gone: whoever changes a PV in use knows why.
	Unfit string
	// Unbound: its phase says that no claim is bound to it, nor was. Loose: no claim ever can have been.
	Unbound, Loose bool
	// Released: its phase is Released or Failed.
	Released bool
	// Orphaned: a live look shows the claim of its claimRef gone or bound elsewhere.
	Orphaned bool
	// Reclaim: its reclaim policy is Delete.
	Reclaim bool
	Held    bool // carries our finalizer
	Leaving bool // has a deletionTimestamp
}

// Proven tells that the PV exists and carries the claim's UID.
func (v Volume) Proven() bool { return v.Exists && v.Fault == "" }

// Serves tells that it is what the claim asked for as well.
func (v Volume) Serves() bool { return v.Proven() && v.Unfit == "" }

// Run is one Job of the UID.
type Run struct {
	Name string
	runs.Record
	// Live: some pod of it may still run.
	Live bool
	// Refused is why the PV that the container describes cannot be written; empty: it can, or there is
	// none to write.
	Refused string
	// Leaving: the Job has a deletionTimestamp. PodKept: it has a pod, which stays until it is read.
	Leaving, PodKept bool
	// Trouble is why a live run makes no progress, or nil; Look is when to look again.
	Trouble *runs.Trouble
	Look    time.Time
	// Outcome of a run that has ended.
	Outcome runs.Outcome
	// Output is what its container said, of a batch to the first who settles it only.
	Output string
	// Grew: after this expand the volume is larger than its PV says. Short: it is smaller than it was
	// to be, whatever the exit code.
	Grew, Short bool
	// Shown: the claim's annotations tell this run's result.
	Shown bool
	// Returned tells how far its claim has come back to the scheduler after it.
	Returned Return
}

// Return is how far a claim has come on its way back to the scheduler, to be given another node.
type Return int

// The stages of a return. Between the last two lies one write on the claim: it is made on the claim as it was when
// that was announced, or never, so that no claim is returned twice after one run.
const (
	ReturnNone      Return = iota
	ReturnAnnounced        // the run's Job says that the claim, as it is, goes back
	ReturnOver             // the claim has changed since: by that, or by somebody else's write
)

// Target is a config that can serve a request, or the reason why none can.
type Target struct {
	// Problem is why nothing can be launched; nil: nothing is in the way.
	Problem *Problem
	// Revision, Hash and Node of the request as it stands now.
	Revision, Hash, Node string
	// Slot: of the Jobs that the class may start, the next is this UID's.
	Slot bool
	// MaxAttempts of the config; 0: no limit.
	MaxAttempts int
	// Pinned: the revision is stored, so that a volume made now can still be deleted when its ConfigMap
	// and its class have gone.
	Pinned bool
	// Serves: the image knows the verb.
	Serves bool
	// Chosen: the scheduler has chosen the node, and can be asked to choose again. OnNode: runs go there only.
	Chosen, OnNode bool
	// Gone names where a run would have to go, which does not exist any more; IfGone is what to do then.
	Gone   string
	IfGone config.NodeGone
}

// Problem is what the claim's user or the administrator is told.
type Problem struct {
	Reason string // of the event, in CamelCase
	Note   string // cause and remedy
	// Again is when to look again, where nothing would tell that the problem has gone; zero: a change will.
	Again time.Duration
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

// unused is the number of the next provision. A delete may have outlived the provision that it came after, and
// must not be taken for the undo of a new one of the same number.
func (v View) unused() int {
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
func (v View) undo(p *Run) *Run {
	d := v.Newest(contract.Delete)
	if d == nil || d.Volume != "" && v.Volume.Exists || d.After != p.Number {
		return nil
	}
	return d
}

// reclaim returns the newest run that deletes this very PV's volume, or nil. A PV of the same name that
// appeared after an undo has another answer coming.
func (v View) reclaim() *Run {
	d := v.Newest(contract.Delete)
	if d == nil || d.Volume == "" || d.Volume != v.Volume.UID {
		return nil
	}
	return d
}

func done(r *Run) bool { return r != nil && r.Outcome.Verdict == contract.Done }

// madeNothing: neither this run nor one before it can have left anything in the storage, or that has
// been undone.
func (v View) madeNothing(p *Run) bool {
	return p.Clean && p.Outcome.Verdict.MadeNothing() || done(v.undo(p))
}
