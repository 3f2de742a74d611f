package run

import "github.com/flex-provisioner/flex-provisioner/dispatcher/decide"

// Action is what is done next for a Job, and what one of its claims says about it.
type Action int

// The actions, the first one first where claims say several.
const (
	Cancel   Action = iota // delete the Job: no claim may have it
	Record                 // write how its run ended
	Note                   // write something else on the Job
	Release                // write that the claim needs its record no more
	Wait                   // something of the claim comes first
	Open                   // let the pod be scheduled
	Unneeded               // delete the Job: the claim does not need it, and another may
)

// Job is what is to be known of a Job beside what its claims say.
type Job struct {
	Name    string
	Deletes bool
}

// Decide returns the one thing to do next for a Job, from what is decided for each of its claims, nil if
// one could not be observed. A gate waits for all of them, and a delete for all to need it: what its
// container is given cannot be changed. A Job is cancelled for one that says so, or if none needs it.
// Anything else is written for those that say so.
func Decide(job Job, answers []decide.Action) Action {
	next, unneeded := Unneeded, false
	for _, answer := range answers {
		says := saysOf(job.Name, answer)
		next, unneeded = min(next, says), unneeded || says == Unneeded
	}
	if len(answers) == 0 || next == Open && unneeded && job.Deletes {
		return Wait
	}
	return next
}

// saysOf returns what a claim says about a Job.
func saysOf(job string, answer decide.Action) Action {
	if answer == nil || decide.RunOf(answer) != job {
		return Wait
	}
	switch a := answer.(type) { //nolint:gochecksumtype // no other is a write on a Job
	case decide.Cancel:
		if a.UnlessNeeded {
			return Unneeded
		}
		return Cancel
	case decide.RecordOutcome:
		return Record
	case decide.KeepVolume, decide.AnnounceReschedule:
		return Note
	case decide.ReleaseRecord:
		return Release
	case decide.Confirm:
		return Open
	default:
		return Wait
	}
}
