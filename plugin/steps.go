package plugin

import (
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// nextStep names what the dispatcher does next.
//
//nolint:gocyclo // a line per action
func nextStep(action decide.Action) string {
	switch a := action.(type) {
	case decide.Wait:
		return a.Why
	case decide.ReportProblem:
		return a.Problem.Note.String()
	case decide.AwaitSlot:
		return "a slot of the class becomes free"
	case decide.StoreRevision:
		return "the dispatcher stores the config's revision"
	case decide.Launch:
		return "the dispatcher creates a Job with the verb " + string(a.Verb)
	case decide.Confirm:
		return "the dispatcher lets the pod of the Job " + a.Run.Name + " be scheduled"
	case decide.Cancel:
		if a.UnlessNeeded && len(a.Run.UIDs) > 1 {
			return "the dispatcher deletes the Job " + a.Run.Name + " unless another claim of it needs it"
		}
		return "the dispatcher deletes the Job " + a.Run.Name
	case decide.RecordOutcome:
		return "the dispatcher records the outcome of the Job " + a.Run.Name
	case decide.ReleaseRecord, decide.RemovePodFinalizer:
		return "the dispatcher lets the Job and its pod expire"
	case decide.KeepVolume:
		return "the dispatcher sets the reclaim policy to Retain, since another PersistentVolume may have the same volume"
	case decide.CreatePV:
		return "the dispatcher creates the PersistentVolume"
	case decide.PublishResult:
		return "the dispatcher writes the result on the claim"
	case decide.SetFinalizer:
		return "the dispatcher changes its finalizer on the PersistentVolume"
	case decide.DeletePV:
		return "the dispatcher deletes the PersistentVolume"
	case decide.SetResizeStage:
		return "the dispatcher writes on the claim how far its expansion is"
	case decide.AnnounceReschedule, decide.Reschedule:
		return "the dispatcher returns the claim to the scheduler"
	}
	return ""
}
