package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Action is the one thing to do next. Each action makes at most one write, but Confirm first deletes
// PVs, and RecordOutcome ends the sidecars of a pod. What is written on a Job is what one of its claims
// says about it: package run carries it out, for all claims of the Job. The methods below are the table
// of what is to be known of each beside that write.
//
//sumtype:decl
type Action interface{ traits() traits }

// traits are what is to be known of an action without carrying it out.
type traits struct {
	// run names the run that it is about, if there is one.
	run string
	// safe is set if it does no harm when the facts that it was decided on are a little old.
	safe bool
	// gateWaits is set if a gated run waits for it. Any other action says that the run is not
	// wanted now.
	gateWaits bool
	// onJob is set if it is a write on the Job of the run or on its pod.
	onJob bool
}

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

// StoreRevision stores the config's revision. It comes before the first Job that names the
// revision.
type StoreRevision struct{}

// AwaitSlot waits for a slot of the class, if need be behind a Job that cannot start. Nothing else
// is in the way of a launch of this verb.
type AwaitSlot struct {
	Verb contract.Verb
	// Due is when the retry was due, zero for a first attempt.
	Due time.Time
	// MayBatch is set as in Launch.
	MayBatch bool
	// Behind is set if the run is to wait behind a Job that cannot start: why that does not.
	Behind *Problem
}

// Launch creates a Job.
type Launch struct {
	Verb            contract.Verb
	Number, Attempt int
	// After is the number of the newest provision run, on a delete.
	After int
	// Undo marks a delete of what the newest provision may have made, with that run's own request.
	Undo bool
	// NeverBound marks a delete of a PV's volume that no claim was ever bound to. Its request says
	// that it is an undo, and has the real PV: an image that adopts volumes keeps the data.
	NeverBound bool
	// NothingBefore is set if nothing for the claim can be in the storage yet.
	NothingBefore bool
	// MayBatch is set if the Job may serve other requests, too. A request that has failed before is
	// tried alone, and undone alone, so that one bad request does not fail the other requests of
	// its batch again and again.
	MayBatch bool
	// AnyNode is set if the node that the run should go to no longer exists, so that the run goes
	// to any node.
	AnyNode bool
	// NeedsLive marks an undo of a run whose record is released: the caches keep only a part of its
	// request.
	NeedsLive bool
	// LeftBehind says what an earlier run may have left in the storage that is given up, and why.
	// It is usually empty.
	LeftBehind string
}

// AnnounceReschedule writes on a run's Job that its claim, as it is now, returns to the scheduler.
// Returns counts this return.
type AnnounceReschedule struct {
	Run     Run
	Returns jobs.Returns
}

// Reschedule removes the selected node from the claim, unless the claim has changed since, so that
// the scheduler selects again.
type Reschedule struct{ Why string }

// Confirm lets a Job's pod be scheduled, by removing the dispatcher's gate. Where the run deletes
// the volume of a PV, that PV is deleted before: it must be as it was judged, and its finalizer
// keeps it.
type Confirm struct {
	Run Run
	// NeedsLive is set if the caches do not prove enough.
	NeedsLive bool
}

// Cancel deletes a Job that makes no progress, once none is expected or no claim needs the run any
// more, or when another finds out when it would start.
type Cancel struct {
	Run Run
	// UnlessNeeded is set if the Job goes on as long as another of its claims needs it.
	UnlessNeeded bool
}

// RemovePodFinalizer removes our finalizer from a pod whose Job no longer exists. Package run removes
// it from the others.
type RemovePodFinalizer struct{}

// KeepVolume keeps a volume that another PV may stand for. It notes that PV on a provision's Job
// or, without a Run, sets the policy of the UID's PV to Retain.
type KeepVolume struct{ Run Run }

// CreatePV creates the PV that the container of a config with write-pv: dispatcher has described,
// as it is on record.
type CreatePV struct{ Run Run }

// RecordOutcome writes the outcome of a run that has ended on its Job. Success says whether the run
// counts as a success.
type RecordOutcome struct {
	Run     Run
	Success bool
	// Describes is set if the PV is still to be created, from what the container has said of it.
	// That is recorded as well. Whether the run is a success is known then.
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

// SetFinalizer adds our finalizer to the PV, or removes it.
type SetFinalizer struct {
	Remove bool
	// Misnamed is set if it is removed from a PV of the UID under another name. The dispatcher
	// deletes no volume by such a PV.
	Misnamed bool
	// LeftBehind says that the volume stays in the storage, and why. It is usually empty.
	LeftBehind string
	// NeedsLive is set if the policy is Retain, and the caches do not prove that every provision is
	// on record. An administrator may delete the PV to keep the volume, and the record of a
	// provision that they do not show yet would undo it.
	NeedsLive bool
}

// DeletePV deletes the PV whose volume has been deleted.
type DeletePV struct{}

// SetResizeStage writes how far a resize is. The PV says ResizeStored, by the size that Run has
// made its volume. The claim's status says the other stages, and nothing for ResizeNone. Run is
// also the one that reported ResizeInfeasible.
type SetResizeStage struct {
	To  ResizeStage
	Run Run
}

func (Wait) traits() traits          { return traits{safe: true} }
func (ReportProblem) traits() traits { return traits{safe: true} }
func (StoreRevision) traits() traits { return traits{safe: true, gateWaits: true} }
func (AwaitSlot) traits() traits     { return traits{safe: true} }

// A Job that is launched on old facts is found out before its gate is removed.
func (a Launch) traits() traits  { return traits{safe: !a.NeedsLive} }
func (a Confirm) traits() traits { return traits{run: a.Run.Name, safe: !a.NeedsLive, onJob: true} }
func (a Cancel) traits() traits  { return traits{run: a.Run.Name, onJob: true} }

// A cache may show that a Job has ended before it shows the end of its pod, which has the exit code.
func (a RecordOutcome) traits() traits {
	return traits{run: a.Run.Name, safe: a.Success && a.Run.Outcome.ExitCode != nil, gateWaits: true, onJob: true}
}

func (RemovePodFinalizer) traits() traits { return traits{gateWaits: true} }

func (a PublishResult) traits() traits {
	return traits{run: a.Run.Name, safe: a.Success, gateWaits: true}
}

func (a ReleaseRecord) traits() traits {
	return traits{run: a.Run.Name, gateWaits: true, onJob: true}
}

func (a KeepVolume) traits() traits {
	return traits{run: a.Run.Name, safe: true, gateWaits: true, onJob: a.Run.Name != ""}
}
func (a AnnounceReschedule) traits() traits { return traits{run: a.Run.Name, onJob: true} }
func (Reschedule) traits() traits           { return traits{} }
func (a CreatePV) traits() traits           { return traits{run: a.Run.Name} }

// A finalizer is written on the PV as it was observed, or not at all.
func (a SetFinalizer) traits() traits {
	return traits{safe: a.LeftBehind == "" && !a.NeedsLive && !a.Misnamed, gateWaits: !a.Remove || a.Misnamed}
}

func (DeletePV) traits() traits         { return traits{} }
func (a SetResizeStage) traits() traits { return traits{run: a.Run.Name, gateWaits: true} }

// IsSafeOnStaleFacts reports whether an action does no harm if the facts that it was decided on are
// a little old. Every other action is decided again on live facts before it is carried out.
func IsSafeOnStaleFacts(a Action) bool { return a.traits().safe }

// IsWrite reports whether an action writes anything.
func IsWrite(a Action) bool {
	switch a.(type) { //nolint:gochecksumtype // the others do
	case Wait, ReportProblem, AwaitSlot:
		return false
	default:
		return true
	}
}

// IsOnJob reports whether an action is a write on the Job of its run, or on the pod of that. Package run
// carries it out.
func IsOnJob(a Action) bool { return a.traits().onJob }

// RunOf returns the name of the run that an action is about, or nothing.
func RunOf(a Action) string { return a.traits().run }
