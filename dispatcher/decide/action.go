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

// Tell writes an event and then waits, like Wait.
type Tell struct {
	Problem Problem
	Until   time.Time
}

// Pin stores the config's revision, before the first Job that names it.
type Pin struct{}

// Queue waits for a slot of the class: nothing else is in the way of a launch of this verb.
type Queue struct {
	Verb contract.Verb
	// Since is when the retry was due; zero on a first attempt.
	Since time.Time
	// Shares: see Launch.
	Shares bool
}

// Launch creates a Job.
type Launch struct {
	Verb            contract.Verb
	Number, Attempt int
	// After is the number of the newest provision run, on a delete.
	After int
	// Undo: a delete of what the newest provision may have made, with that run's own request.
	Undo bool
	// Clean: nothing of the claim's can be in the storage yet.
	Clean bool
	// Shares: the Job may serve other requests, too. What has failed before is tried alone, and undone
	// alone, so that a bad request has no neighbours for long.
	Shares bool
	// Anywhere: the node that the run should go to has gone, and it runs on any.
	Anywhere bool
	// Left tells what an earlier run may have left in the storage that is given up, and why; usually empty.
	Left string
}

// Announce writes on a run's Job that its claim, as it is now, goes back to the scheduler.
type Announce struct{ Run Run }

// Reschedule takes the selected node off the claim, unless that has changed meanwhile, so that the scheduler
// chooses again.
type Reschedule struct{ Why string }

// Cancel deletes a Job that makes no progress, and of which none is expected or wanted any more.
type Cancel struct{ Run Run }

// Waive writes on a Job that has not started, and that others wait for, that this claim does not.
type Waive struct{ Run Run }

// LetGo lets a pod go, whose outcome is written.
type LetGo struct{ Run Run }

// Write makes the PV that a container of a config with write-pv: dispatcher has described.
type Write struct{ Run Run }

// Settle writes the outcome of a run that has ended on its Job. Success is the verdict on it.
type Settle struct {
	Run     Run
	Success bool
	// Retry is when the next run may start; zero: none will, or at once.
	Retry time.Time
}

// Show writes the result of a settled run on the claim.
type Show struct {
	Run     Run
	Success bool
}

// Release takes the record finalizer off a Job and lets it expire.
type Release struct {
	Run Run
	// Left tells that something may stay in the storage, and why; usually empty.
	Left string
}

// Hold puts our finalizer on the PV.
type Hold struct{}

// Unhold takes it off.
type Unhold struct {
	// Left tells that the volume stays in the storage, and why; usually empty.
	Left string
}

// Withdraw deletes a PV that nobody was ever bound to. Our finalizer keeps it until its volume has been
// deleted; from now on nobody can be bound to it.
type Withdraw struct{}

// Remove deletes the PV whose volume has been deleted.
type Remove struct{}

// Begin writes on the claim that its volume grows, and to which size.
type Begin struct{}

// Refuse writes on the claim that its volume cannot grow to that size. Its user may ask for less.
type Refuse struct{ Run Run }

// Grow writes on the PV how large an expand has made its volume.
type Grow struct{ Run Run }

// HandOver writes on the claim that its file system is left to be grown.
type HandOver struct{}

// Finish writes on the claim that it has its size.
type Finish struct{}

func (Wait) isAction()       {}
func (Tell) isAction()       {}
func (Pin) isAction()        {}
func (Queue) isAction()      {}
func (Launch) isAction()     {}
func (Announce) isAction()   {}
func (Reschedule) isAction() {}
func (Cancel) isAction()     {}
func (Waive) isAction()      {}
func (LetGo) isAction()      {}
func (Write) isAction()      {}
func (Settle) isAction()     {}
func (Show) isAction()       {}
func (Release) isAction()    {}
func (Hold) isAction()       {}
func (Unhold) isAction()     {}
func (Withdraw) isAction()   {}
func (Remove) isAction()     {}
func (Begin) isAction()      {}
func (Refuse) isAction()     {}
func (Grow) isAction()       {}
func (HandOver) isAction()   {}
func (Finish) isAction()     {}

// Certain tells whether an action does no harm when the facts it was decided on were a little old.
// Every other action is decided again on live facts before it is carried out.
func Certain(a Action) bool {
	switch a := a.(type) {
	case Wait, Tell, Pin, Queue, LetGo, Hold:
		return true
	case Settle:
		return a.Success
	case Show:
		return a.Success
	case Launch, Announce, Reschedule, Cancel, Waive, Write, Release, Unhold, Withdraw, Remove, Begin, Refuse, Grow, HandOver, Finish:
		return false
	default:
		return false
	}
}
