package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Action is the one thing to do next. Each action makes at most one write.
//
//sumtype:decl
type Action interface{ isAction() }

// Wait does nothing until something changes, or until a time if there is one.
type Wait struct {
	Until time.Time
	Why   string
}

// ReportProblem emits an event and then waits, like Wait.
type ReportProblem struct {
	Problem Problem
	Until   time.Time
}

// StoreRevision stores the config's revision. It comes before the first Job that names the revision.
type StoreRevision struct{}

// AwaitSlot waits for a slot of the class, if need be behind a Job that cannot start. Nothing else is in the way of a
// launch of this verb.
type AwaitSlot struct {
	Verb contract.Verb
	// Since is when the retry was due, zero for a first attempt.
	Since time.Time
	// MayBatch is set as in Launch.
	MayBatch bool
	// Behind is set if the run is to wait behind a Job that cannot start: why that does not.
	Behind *Problem
}

// Launch creates a Job.
type Launch struct {
	// Since is when the first run for the claim was created after which something may be in the storage; zero: this one is the first.
	Since           time.Time
	Verb            contract.Verb
	Number, Attempt int
	// After is the number of the newest provision run, on a delete.
	After int
	// Undo marks a delete of what the newest provision may have made, with that run's own request.
	Undo bool
	// NeverBound marks a delete of a PV's volume that no claim was ever bound to. Its request says that it is an undo, and has the real PV: an image
	// that adopts volumes keeps the data.
	NeverBound bool
	// NothingBefore is set if nothing for the claim can be in the storage yet.
	NothingBefore bool
	// MayBatch is set if the Job may serve other requests, too. A request that has failed before is tried alone, and
	// undone alone, so that one bad request does not fail the other requests of its batch again and again.
	MayBatch bool
	// AnyNode is set if the node that the run should go to no longer exists, so that the run goes to any node.
	AnyNode bool
	// NeedsLive marks an undo of a run whose record is released: the caches keep only a part of its request.
	NeedsLive bool
	// LeftBehind says what an earlier run may have left in the storage that is given up, and why. It is usually
	// empty.
	LeftBehind string
}

// AnnounceReschedule writes on a run's Job that its claim, as it is now, returns to the scheduler. Returns counts this
// return.
type AnnounceReschedule struct {
	Run     Run
	Returns jobs.Returns
}

// Reschedule removes the selected node from the claim, unless the claim has changed since, so that the scheduler
// selects again.
type Reschedule struct{ Why string }

// Confirm lets a Job's pod be scheduled, by removing the dispatcher's gate. Where the run deletes the volume of a PV, that PV is deleted
// before: it must be as it was judged, and its finalizer keeps it.
type Confirm struct {
	Run Run
	// NeedsLive is set if the caches do not prove enough.
	NeedsLive bool
}

// Cancel deletes a Job that makes no progress, once none is expected or no claim needs the run any more, or when another
// finds out when it would start. It also deletes one of an audit that may not run.
type Cancel struct {
	Run Run
	// Why is what an event says of a Job that an administrator's audit has made.
	Why string
}

// Waive writes on a Job that has not started, and that other claims need, that this claim no longer needs it.
type Waive struct{ Run Run }

// RemovePodFinalizer removes our finalizer from a pod whose outcome is recorded. Without a Run it is a pod whose Job no longer exists.
type RemovePodFinalizer struct{ Run Run }

// NoteRival writes on a provision's Job, or without a Run on the UID's PV, that another PV may stand for the same volume.
type NoteRival struct{ Run Run }

// FreeMisnamed removes our finalizer from a PV of the UID under another name. The dispatcher deletes no volume by such a PV.
type FreeMisnamed struct{}

// CreatePV creates the PV that the container of a config with write-pv: dispatcher has described, as it is on record.
type CreatePV struct{ Run Run }

// RecordOutcome writes the outcome of a run that has ended on its Job. Success says whether the run counts as a
// success.
type RecordOutcome struct {
	Run     Run
	Success bool
	// Describes is set if the PV is still to be created, from what the container has said of it. That is recorded as well. Whether the run is a
	// success is known then.
	Describes bool
	// Release is set if the record is no longer needed once it has this outcome.
	Release bool
	// Retry is when the next run may start. It is zero if none will, or if one may start at once.
	Retry time.Time
}

// PublishResult writes the result of a run, whose outcome is recorded, on the claim.
type PublishResult struct {
	Run     Run
	Success bool
}

// ReleaseRecord removes the record finalizer from a Job and lets the Job expire.
type ReleaseRecord struct {
	Run Run
	// LeftBehind says that something may stay in the storage, and why. It is usually empty.
	LeftBehind string
}

// AddFinalizer adds our finalizer to the PV.
type AddFinalizer struct{}

// RemoveFinalizer removes our finalizer from the PV.
type RemoveFinalizer struct {
	// LeftBehind says that the volume stays in the storage, and why. It is usually empty.
	LeftBehind string
	// NeedsLive is set if the policy is Retain, and the caches do not prove that every provision is on record. An administrator may delete the PV to keep the
	// volume, and the record of a provision that they do not show yet would undo it.
	NeedsLive bool
}

// DeletePV deletes the PV whose volume has been deleted.
type DeletePV struct{}

// SetPVCapacity writes on the PV how large an expand has made its volume.
type SetPVCapacity struct{ Run Run }

// SetResizeStatus writes on the claim how far its resize is: ResizeInProgress before the first run for it starts,
// ResizeInfeasible when Run reported that the volume cannot have that size, ResizeLeftToNode when the volume has the
// size and its file system does not, ResizeNone when the claim has the size.
type SetResizeStatus struct {
	To  ResizeStage
	Run Run
}

func (Wait) isAction()               {}
func (ReportProblem) isAction()      {}
func (StoreRevision) isAction()      {}
func (AwaitSlot) isAction()          {}
func (Launch) isAction()             {}
func (AnnounceReschedule) isAction() {}
func (Reschedule) isAction()         {}
func (Confirm) isAction()            {}
func (Cancel) isAction()             {}
func (Waive) isAction()              {}
func (RemovePodFinalizer) isAction() {}
func (NoteRival) isAction()          {}
func (FreeMisnamed) isAction()       {}
func (CreatePV) isAction()           {}
func (RecordOutcome) isAction()      {}
func (PublishResult) isAction()      {}
func (ReleaseRecord) isAction()      {}
func (AddFinalizer) isAction()       {}
func (RemoveFinalizer) isAction()    {}
func (DeletePV) isAction()           {}
func (SetResizeStatus) isAction()    {}
func (SetPVCapacity) isAction()      {}

// IsSafeOnStaleFacts reports whether an action does no harm if the facts that it was decided on are a little old.
// Every other action is decided again on live facts before it is carried out.
func IsSafeOnStaleFacts(a Action) bool {
	switch a := a.(type) {
	case RemovePodFinalizer:
		return a.Run.Name != ""
	case Wait, ReportProblem, StoreRevision, AwaitSlot, AddFinalizer, NoteRival:
		return true
	case Launch:
		return !a.NeedsLive // a Job that is launched on old facts is found out before its gate is removed
	case Confirm:
		return !a.NeedsLive
	case RemoveFinalizer:
		return a.LeftBehind == "" && !a.NeedsLive // written on the PV as it was observed, or not at all
	case RecordOutcome:
		return a.Success
	case PublishResult:
		return a.Success
	case AnnounceReschedule, Reschedule, FreeMisnamed, Cancel, Waive, CreatePV, ReleaseRecord, DeletePV, SetPVCapacity, SetResizeStatus:
		return false
	default:
		return false
	}
}
