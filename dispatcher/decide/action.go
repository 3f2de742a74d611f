package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Action is the one thing to do next. Each makes at most one write.
//
//sumtype:decl
type Action interface{ isAction() }

// Wait does nothing until something changes, or until a time if there is one.
type Wait struct {
	Until time.Time
	Why   string
}

// ReportProblem writes an event and then waits, like Wait.
type ReportProblem struct {
	Problem Problem
	Until   time.Time
}

// StoreRevision stores the config's revision, before the first Job that names it.
type StoreRevision struct{}

// AwaitSlot waits for a slot of the class: nothing else is in the way of a launch of this verb.
type AwaitSlot struct {
	Verb contract.Verb
	// Since is when the retry was due; zero on a first attempt.
	Since time.Time
	// MayBatch: see Launch.
	MayBatch bool
}

// Launch creates a Job.
type Launch struct {
	Verb            contract.Verb
	Number, Attempt int
	// After is the number of the newest provision run, on a delete.
	After int
	// Undo: a delete of what the newest provision may have made, with that run's own request.
	Undo bool
	// Delete: nothing of the claim's can be in the storage yet.
	NothingBefore bool
	// MayBatch: the Job may serve other requests, too. What has failed before is tried alone, and undone
	// alone, so that a bad request has no neighbours for long.
	MayBatch bool
	// AnyNode: the node that the run should go to has gone, and it runs on any.
	AnyNode bool
	// LeftBehind tells what an earlier run may have left in the storage that is given up, and why; usually empty.
	LeftBehind string
}

// AnnounceReschedule writes on a run's Job that its claim, as it is now, goes back to the scheduler.
type AnnounceReschedule struct{ Run Run }

// Reschedule takes the selected node off the claim, unless that has changed meanwhile, so that the scheduler
// chooses again.
type Reschedule struct{ Why string }

// Cancel deletes a Job that makes no progress, and of which none is expected or wanted any more.
type Cancel struct{ Run Run }

// Waive writes on a Job that has not started, and that others wait for, that this claim does not.
type Waive struct{ Run Run }

// RemovePodFinalizer lets a pod go, whose outcome is written.
type RemovePodFinalizer struct{ Run Run }

// CreatePV makes the PV that a container of a config with write-pv: dispatcher has described.
type CreatePV struct{ Run Run }

// RecordOutcome writes the outcome of a run that has ended on its Job. Success is the verdict on it.
type RecordOutcome struct {
	Run     Run
	Success bool
	// Retry is when the next run may start; zero: none will, or at once.
	Retry time.Time
}

// PublishResult writes the result of a settled run on the claim.
type PublishResult struct {
	Run     Run
	Success bool
}

// ReleaseRecord takes the record finalizer off a Job and lets it expire.
type ReleaseRecord struct {
	Run Run
	// LeftBehind tells that something may stay in the storage, and why; usually empty.
	LeftBehind string
}

// AddFinalizer puts our finalizer on the PV.
type AddFinalizer struct{}

// RemoveFinalizer takes it off.
type RemoveFinalizer struct {
	// LeftBehind tells that the volume stays in the storage, and why; usually empty.
	LeftBehind string
}

// DeleteUnboundPV deletes a PV that nobody was ever bound to. Our finalizer keeps it until its volume has been
// deleted; from now on nobody can be bound to it.
type DeleteUnboundPV struct{}

// DeletePV deletes the PV whose volume has been deleted.
type DeletePV struct{}

// SetPVCapacity writes on the PV how large an expand has made its volume.
type SetPVCapacity struct{ Run Run }

// SetResizeStatus writes on the claim how far its resize has come: ResizeInProgress before the first run of it starts,
// ResizeInfeasible when Run was told that the volume cannot have that size, ResizeLeftToNode when the volume has it and
// its file system has not, ResizeNone when the claim has it.
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
func (Cancel) isAction()             {}
func (Waive) isAction()              {}
func (RemovePodFinalizer) isAction() {}
func (CreatePV) isAction()           {}
func (RecordOutcome) isAction()      {}
func (PublishResult) isAction()      {}
func (ReleaseRecord) isAction()      {}
func (AddFinalizer) isAction()       {}
func (RemoveFinalizer) isAction()    {}
func (DeleteUnboundPV) isAction()    {}
func (DeletePV) isAction()           {}
func (SetResizeStatus) isAction()    {}
func (SetPVCapacity) isAction()      {}

// SafeOnStaleFacts tells whether an action does no harm when the facts it was decided on were a little old.
// Every other action is decided again on live facts before it is carried out.
func IsSafeOnStaleFacts(a Action) bool {
	switch a := a.(type) {
	case Wait, ReportProblem, StoreRevision, AwaitSlot, RemovePodFinalizer, AddFinalizer:
		return true
	case RecordOutcome:
		return a.Success
	case PublishResult:
		return a.Success
	case Launch, AnnounceReschedule, Reschedule, Cancel, Waive, CreatePV, ReleaseRecord, RemoveFinalizer, DeleteUnboundPV, DeletePV, SetPVCapacity, SetResizeStatus:
		return false
	default:
		return false
	}
}
