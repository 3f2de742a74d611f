package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// View is all that is known of one claim's UID.
type View struct {
	Now   time.Time
	Claim Claim
	// Unasked is set if the claim is not bound and the PV controller has not asked for its volume
	// yet. It may be about to write that on the claim, and reports a failure to the claim's user if
	// another client's write comes between.
	Unasked bool
	Volume  Volume
	// WhyRival is why another PV, which may no longer exist, may use the UID's volume. It is
	// usually empty.
	WhyRival string
	// Misnamed is set if a PV of the UID under another name has our finalizer, which keeps nothing,
	// and is to go.
	Misnamed bool
	// Runs are the UID's Jobs, of any verb and in any order.
	Runs []Run
	// Provision is how the claim would be provisioned now.
	Provision Target
	// Delete is how its volume, or what a run may have made, would be deleted.
	Delete Target
	// Resize is how far a resize is that the claim of the volume asks for, and Expand how the
	// volume would be expanded. Expand's Hash is the size.
	Resize ResizeStage
	Expand Target
	// Contested is set if the caches prove nothing about the claim. Jobs of the UID may be in
	// several namespaces, whose watches have no common order. Or the PV's phase may be about
	// another claim: its claimRef names another, or it is Failed.
	Contested bool
	// OrphanPod is set if a pod that has ended is kept although its Job no longer exists.
	OrphanPod bool
	// LeftPod is the problem that a pod of the UID may run although its Job no longer exists, or
	// although its run has ended, on a lost node. It is nil if there is none.
	LeftPod *Problem
	// Refused names the writes that were refused a moment ago, or that the object did not show
	// afterwards, by WriteOf.
	Refused []string
	// NotBefore is when a run may be launched after one was cancelled at its gate. NoReturnBefore
	// is when the claim may be returned again to the scheduler from an excluded node. Each is zero
	// for at once.
	NotBefore, NoReturnBefore time.Time
}

// WithSlot returns the View of a claim that is offered a slot by its class. Without one nothing is
// launched.
func (v View) WithSlot() View {
	for _, target := range []*Target{&v.Provision, &v.Delete, &v.Expand} {
		target.HasSlot = true
	}
	return v
}

// Claim is the state of the claim with the UID.
type Claim int

// The states of a claim.
const (
	ClaimGone           Claim = iota // no claim has this UID any more
	ClaimTerminating                 // it has a deletionTimestamp
	ClaimNotOurs                     // another provisioner's, not ours yet, since no node is selected, or about to be bound to the PV of this UID
	ClaimPending                     // ours to provision
	ClaimBound                       // bound to the PV of this UID
	ClaimBoundElsewhere              // bound to another PV
)

// Volume is the PV of the UID, found by its name.
type Volume struct {
	State State
	Use   Use
	UID   string // the PV's own
	// Why is what is wrong with the PV: it does not prove the provision, or its claim can never be
	// bound to it. Or its claim no longer needs it, and it is not known whose it is now.
	Why          string
	PolicyDelete bool // its reclaim policy is Delete
	HasFinalizer bool // carries our finalizer
	Terminating  bool // has a deletionTimestamp
	// RecordReleased is set if this dispatcher has released the record of the run that wrote the PV
	// a moment ago, with all runs in view.
	RecordReleased bool
	// Attached is the problem that the volume of a released PV is still read, or nil. A run clones
	// it, or a node has it attached: its kubelet may have it mounted, and hangs when it is deleted.
	Attached *Problem
	// Reserved is the problem that a PV waits for a claim of a name that does not exist, nil if it
	// does not wait.
	Reserved *Problem
	// KeptUntil is until when the volume of a released PV waits for its delete, zero if that is
	// due.
	KeptUntil time.Time
}

// State is what the PV says of the provision.
type State int

// The states of a PV.
const (
	Absent     State = iota
	Foreign          // it says that it is of another provisioner, whose dispatcher decides about it
	Unproven         // it does not prove that the provision succeeded
	Mismatched       // Kubernetes can never bind it to its claim. Judged while that is unbound, since administrators may edit a PV in use
	Fits             // it carries the claim's UID, and nothing is wrong with it
)

// Use is who may use the volume of a PV.
type Use int

// The uses of a volume.
const (
	InUse      Use = iota // a claim is bound to it, or may be about to be
	Unbound               // its phase says that no claim is or was bound to it
	NeverBound            // no claim can ever have been: the claim of the UID exists and is not bound, and the claimRef names it, or was taken from it
	Released              // its phase says so, and the claim of its claimRef no longer exists or is bound to another PV
)

// Run is one Job of the UID.
type Run struct {
	Name string
	runs.Record
	// Newer is set if a later dispatcher has written the record, in a version that this one does
	// not know.
	Newer bool
	// Created is when the Job was created.
	Created time.Time
	// Unfinished is set if a pod of the run may still run.
	Unfinished bool
	// Gated is set if the run's pod waits for the dispatcher's confirmation. Confirmed is set once
	// that has begun: it deletes the PVs whose volumes the run deletes, and removes the gate last.
	Gated, Confirmed bool
	// OtherPod names another pod of the UID, of this or any Job, that may run. It is empty if there
	// is none.
	OtherPod string
	// ForeignGate is set if the gated pod waits for another controller, too.
	ForeignGate bool
	// Clones is set for the first claim of a gated run that clones volumes.
	Clones bool
	// GatedSince is when the gated pod was created.
	GatedSince time.Time
	// Unstarted is set if no container of an unfinished run has started, so that it can have done
	// nothing yet.
	Unstarted bool
	// Forget is set if an administrator has given the record up, RetryNow if one asks for the next
	// run at once.
	Forget, RetryNow bool
	// WhyNoPV is why the PV that the container describes cannot be created. It is empty if it can,
	// or if none is to be created.
	WhyNoPV string
	// Terminating is set if the Job has a deletionTimestamp, or has ended and expires as soon as
	// its record is released.
	Terminating bool
	// Stuck is why an unfinished run makes no progress, or nil. RecheckAt is when to recheck. Idle
	// is set if no container of a stuck run can be at work: none has started, or its node is lost.
	Stuck     *Problem
	RecheckAt time.Time
	Idle      bool
	// Void is set if the run is to be cancelled whatever the claim needs. Package observe says why
	// where it sets it.
	Void bool
	// Outcome of a run that has ended.
	Outcome runs.Outcome
	// LostNode names the node of a pod that was deleted by force, of this run or the OtherPod, if
	// that node exists and is not Ready.
	LostNode string
	// Output is the container's output. In a batch it is empty once an outcome is on record: it is
	// emitted once.
	Output string
	// Published is set if the claim's annotations have this run's result.
	Published bool
	// Reschedule is how far the rescheduling of the claim after this run is.
	Reschedule RescheduleStage
}

// RescheduleStage is how far a claim is on its return to the scheduler, which is to select a node
// again.
type RescheduleStage int

// The stages of a rescheduling. Between the last two is one write on the claim. It is made on the
// claim as it was when the rescheduling was announced, or never, so that no claim is rescheduled
// twice after one announcement.
const (
	RescheduleNone      RescheduleStage = iota
	RescheduleAnnounced                 // the run's Job says that the claim, as it is, returns to the scheduler
	RescheduleDone                      // the claim has changed since, by that write or by another client's
)

// ResizeStage is how far a resize is, as PV and claim say. The claim says it by Kubernetes' own
// values in its status, which its user cannot write.
type ResizeStage int

// The stages of a resize.
const (
	ResizeNone       ResizeStage = iota // no claim asks for more, or the claim that does is terminating, or all is said and done
	ResizeRequested                     // the volume is smaller than it is to be, and the claim's status does not say that it grows
	ResizeInProgress                    // the claim's status says that the volume grows
	ResizeInfeasible                    // the claim's status says that the volume cannot have the size
	ResizeGrown                         // the newest expand has made the volume larger than its PV says
	ResizeStored                        // the volume has the size and its file system does not, and the claim's status does not say so
	ResizeLeftToNode                    // the claim's status says what is left to do on a node
	ResizeDone                          // the volume and its file system have the size, and the claim's status does not say so
)

// Target is a config that can serve a request, or the reason why none can.
type Target struct {
	// Problem is why nothing can be launched, nil if nothing is in the way.
	Problem *Problem
	// ConsentUnknown is set if the only problem is that it is not known now whether the namespace
	// of a clone's source consents.
	ConsentUnknown bool
	// Revision, Hash and Node of the request as it stands now.
	Revision, Hash, Node string
	// HasSlot is set if the class offers a slot.
	HasSlot bool
	// Probe is that a Job with the same config revision and nodes cannot start, or nil.
	Probe *Problem
	// MaxAttempts of the config, 0 for no limit.
	MaxAttempts int
	// RevisionStored is set if the config's revision is stored, so that a volume made now can still
	// be deleted when its ConfigMap and its class no longer exist.
	RevisionStored bool
	// Supported is set if the image supports the verb.
	Supported bool
	// NodeSelected is set if the scheduler has selected the node and can select another.
	// OnSelectedNode is set if runs go only there.
	NodeSelected, OnSelectedNode bool
	// OtherNodes are the nodes that the scheduler may select instead, if a run has found one
	// without room.
	OtherNodes []string
	// MissingNode names the node where a run would have to go if it no longer exists.
	// NodeGonePolicy is what to do then.
	MissingNode    string
	NodeGonePolicy config.NodeGone
	// ExcludedNode is why no volume may be made on the selected node, which exists, empty if one
	// may.
	ExcludedNode string
	// Cordoned is set if the selected node takes no further pods, but those that tolerate it.
	Cordoned bool
}

// Problem is what an event reports to the claim's user or to the administrator.
type Problem struct {
	Reason string // of the event, in CamelCase
	Note   reason.Note
	// From is from when it is worth an event, zero for at once.
	From time.Time
	// RetryAfter is when to recheck, if no change would enqueue the UID when the problem is solved.
	// It is zero otherwise.
	RetryAfter time.Duration
}
