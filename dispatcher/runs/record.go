package runs

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Record is what a Job records of itself and of one claim that it serves. Nothing about a claim's runs is kept
// anywhere else.
type Record struct {
	Verb           contract.Verb
	UIDs           []string
	Number         int
	Attempt, After int
	Hash, Revision string
	Node           string
	// AnyNode is set if the run was launched to any node.
	AnyNode bool
	// Volume is the UID of the PV whose volume a delete deletes, empty on an undo.
	Volume string
	// Audit is, on a delete that an administrator's audit has made, the storage's name of the volume that stands for nothing.
	Audit string
	// DescribesPV is set if the dispatcher creates the PV from the container's output.
	DescribesPV bool
	// Described is what the container has said of that PV, if the PV is to be created. It is recorded with the outcome.
	Described string
	// NothingBefore is set if nothing for the claim can have been in the storage before this run.
	NothingBefore bool
	// Since is when the first run for the claim was created after which something may be in the storage.
	Since time.Time
	// Recorded is the recorded outcome, or nil.
	Recorded *Outcome
	// Held is set if the Job still carries the claim's record.
	Held bool
	// Waived is set if the claim no longer needs the run.
	Waived bool
	// Returns is how often the claim has been returned to the scheduler since the run.
	Returns jobs.Returns
	// Others is what is recorded of the other claims that the Job serves.
	Others Others
}

// Others are the other claims that a Job serves. The Job of a single claim has none.
type Others struct {
	// Wanted is set if one of them has not waived the run, Unrecorded if the outcome of one is not recorded.
	Wanted, Unrecorded bool
	// Held is set if the record of one is still needed.
	Held bool
}

// IsRecord reports whether a Job is still the record of a claim.
func IsRecord(job *batchv1.Job) bool { return slices.Contains(job.Finalizers, jobs.FinalizerRecord) }

// IsUndo reports whether a run deletes what a provision may have made without a PV.
func (r Record) IsUndo() bool { return r.Verb == contract.Delete && r.Volume == "" }

// IsFix reports whether an administrator's audit has made a run, to delete a volume that stands for nothing. It undoes no run on record.
func (r Record) IsFix() bool { return r.IsUndo() && r.Audit != "" }

// ReportedAfter is after how long a first run is reported that has not ended. Most have ended before, and each event is a request.
const ReportedAfter = 30 * time.Second

// IsReportedAtLaunch reports whether there is more to say of a provision or a delete than that it was launched for the first time.
func IsReportedAtLaunch(attempt int, anyNode bool) bool { return attempt > 1 || anyNode }

// ReportedAt returns when a run is reported that has not ended, by when its Job was created. It is zero if it was reported at its launch.
func (r Record) ReportedAt(created time.Time) time.Time {
	if r.Verb == contract.Expand || r.IsUndo() || IsReportedAtLaunch(r.Attempt, r.AnyNode) {
		return time.Time{}
	}
	return created.Add(ReportedAfter)
}

// ShownAfter is how long after a run a success is written on a claim that was served in a batch.
const ShownAfter = time.Minute

// ShownFrom returns from when a success may be written on the claim, zero for at once. Claims of a batch are many: while they are bound, a write on each
// is one of ten requests, and the claim's phase says the same. A node's clock that is ahead delays nothing.
func (r Record) ShownFrom(o Outcome, now time.Time) time.Time {
	if len(r.UIDs) < 2 || r.Attempt > 1 || now.Before(o.Finished) {
		return time.Time{}
	}
	return o.Finished.Add(ShownAfter)
}

// RecordOf returns what a Job records of a claim. A damaged number is read as 0.
func RecordOf(job *batchv1.Job, uid string) Record {
	uids, number := jobs.UIDs(job), job.Name[strings.LastIndexByte(job.Name, '-')+1:]
	own := func(annotation string) string { return jobs.Annotation(job, uid, annotation) }
	r := Record{
		Verb:          contract.Verb(job.Labels[jobs.LabelVerb]),
		UIDs:          uids,
		Number:        atoi(number),
		Attempt:       atoi(own(jobs.AnnAttempt)),
		After:         atoi(own(jobs.AnnAfter)),
		Hash:          own(jobs.AnnRequestHash),
		Revision:      job.Annotations[contract.AnnRevision],
		Node:          own(jobs.AnnNode),
		AnyNode:       job.Annotations[jobs.AnnAnywhere] == "true",
		Volume:        own(jobs.AnnVolume),
		Audit:         own(jobs.AnnAudit),
		DescribesPV:   job.Annotations[jobs.AnnWriter] == string(config.DispatcherWrites),
		Described:     job.Annotations[jobs.AnnDescribed],
		NothingBefore: own(jobs.AnnClean) == "true",
		Held:          IsRecord(job) && own(jobs.AnnReleased) == "",
		Waived:        own(jobs.AnnWaived) != "",
		Returns:       jobs.ReturnsOf(job, uid),
		Others:        othersOf(job, uids, uid),
		Since:         sinceOf(job, own(jobs.AnnSince)),
	}
	r.Recorded = decodeOutcome(own(jobs.AnnOutcome))
	return r
}

// decodeOutcome returns nil for a text that is empty or damaged.
func decodeOutcome(text string) *Outcome {
	var o Outcome
	if text == "" || json.Unmarshal([]byte(text), &o) != nil {
		return nil
	}
	return &o
}

// sinceOf returns the time of the annotation, or that of the Job's creation where there is none, or a damaged one.
func sinceOf(job *batchv1.Job, text string) time.Time {
	if since, err := time.Parse(time.RFC3339, text); err == nil {
		return since
	}
	return job.CreationTimestamp.Time
}

func othersOf(job *batchv1.Job, uids []string, uid string) Others {
	var o Others
	for _, other := range uids {
		if o.Wanted && o.Unrecorded && o.Held { // so says the first of a Job that runs
			break
		}
		if other == uid {
			continue
		}
		o.Wanted = o.Wanted || jobs.Annotation(job, other, jobs.AnnWaived) == ""
		o.Unrecorded = o.Unrecorded || jobs.Annotation(job, other, jobs.AnnOutcome) == ""
		o.Held = o.Held || jobs.Annotation(job, other, jobs.AnnReleased) == ""
	}
	return o
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// AnyRecorded reports whether the outcome of any claim of a Job is recorded.
func AnyRecorded(job *batchv1.Job) bool {
	return slices.ContainsFunc(jobs.UIDs(job), func(uid string) bool { return jobs.Annotation(job, uid, jobs.AnnOutcome) != "" })
}

// AllReleased reports whether no claim of a Job needs it as its record.
func AllReleased(job *batchv1.Job) bool {
	return !slices.ContainsFunc(jobs.UIDs(job), func(uid string) bool { return jobs.Annotation(job, uid, jobs.AnnReleased) == "" })
}

// AllSucceeded reports whether the recorded outcome of every claim of a Job is a success.
func AllSucceeded(job *batchv1.Job) bool {
	return !slices.ContainsFunc(jobs.UIDs(job), func(uid string) bool {
		recorded := decodeOutcome(jobs.Annotation(job, uid, jobs.AnnOutcome))
		return recorded == nil || recorded.Verdict != contract.Done
	})
}
