package runs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Record is what a Job records of itself and of one claim that it serves.
type Record struct {
	jobs.Record
	Verb     contract.Verb
	UIDs     []string
	Number   int
	Revision string
	// Held is set if the Job still carries the claim's record.
	Held bool
}

// IsRecord reports whether a Job is still the record of a claim.
func IsRecord(job *batchv1.Job) bool { return slices.Contains(job.Finalizers, jobs.FinalizerRecord) }

// IsNewerRecord reports whether a Job is still a record, and of a newer dispatcher. This one cannot
// read from it whether a container of the Job may still be running.
func IsNewerRecord(job *batchv1.Job) bool { return IsRecord(job) && jobs.IsNewer(job) }

// IsUndo reports whether a run deletes what a provision may have made without a PV.
func (r Record) IsUndo() bool { return r.Verb == contract.Delete && r.Volume == "" }

// JobNamespace is the namespace of the run's Job, which owns the config revision that it names, or
// nothing if it names none.
func (r Record) JobNamespace() string {
	ns, _, _ := strings.Cut(r.Revision, "/")
	return ns
}

// IsRetained reports whether the volume was to be made with the reclaim policy Retain.
func (r Record) IsRetained() bool {
	return r.ReclaimPolicy == string(corev1.PersistentVolumeReclaimRetain)
}

// IsNeverBound reports whether a run's request says that no claim was ever bound to the PV whose
// volume it deletes.
func (r Record) IsNeverBound() bool { return r.Undo && r.Volume != "" }

// ReportedAfter is how long a run may take before an event is emitted. Most end earlier, and their
// verdict is one.
const ReportedAfter = 30 * time.Second

// IsReportedAtLaunch reports whether an event is emitted for the launch of a run that is no undo.
// The event of a failure names the time of the next attempt, so later attempts have none. The first
// expand has one: until then the newest event of the claim says that it was provisioned.
func IsReportedAtLaunch(verb contract.Verb, attempt int, anyNode bool) bool {
	return anyNode || verb == contract.Expand && attempt == 1
}

// ReportedAt returns when a run is reported that has not ended, by when its Job was created. It is
// zero if it was reported at its launch.
func (r Record) ReportedAt(created time.Time) time.Time {
	if r.IsUndo() || IsReportedAtLaunch(r.Verb, r.Attempt, r.AnyNode) {
		return time.Time{}
	}
	return created.Add(ReportedAfter)
}

// ShownAfter is how long after a run a success is written on a claim that was served in a batch.
const ShownAfter = time.Minute

// ShownFrom returns from when a success may be written on the claim, zero for at once. Claims of a
// batch are many: while they are bound, a write on each is one of ten requests, and the claim's
// phase says the same. A node's clock that is ahead delays nothing.
func (r Record) ShownFrom(o Outcome, now time.Time) time.Time {
	if len(r.UIDs) < 2 || r.Attempt > 1 || now.Before(o.Finished) {
		return time.Time{}
	}
	return o.Finished.Add(ShownAfter)
}

// RecordOf returns what a Job records of a claim. A damaged number is read as 0.
func RecordOf(job *batchv1.Job, uid string) Record {
	r := Record{
		Record:   jobs.RecordOf(job, uid),
		Verb:     contract.Verb(job.Labels[jobs.LabelVerb]),
		UIDs:     jobs.UIDs(job),
		Number:   atoi(job.Name[strings.LastIndexByte(job.Name, '-')+1:]),
		Revision: revisionOf(job),
	}
	r.Held = IsRecord(job) && !r.Released
	if r.Since.IsZero() {
		r.Since = job.CreationTimestamp.Time
	}
	return r
}

// revisionOf returns the config revision that a Job names, or nothing if that is of another
// namespace than the Job's. The dispatcher never writes such a Job: its volume would be deleted
// with the config and the login of others.
func revisionOf(job *batchv1.Job) string {
	name := job.Annotations[contract.AnnRevision]
	if ns, _, _ := strings.Cut(name, "/"); ns != job.Namespace {
		return ""
	}
	return name
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// AllRecorded reports whether the outcomes of all claims of a Job are recorded.
func AllRecorded(job *batchv1.Job) bool {
	return !slices.ContainsFunc(jobs.Records(job), func(r jobs.Record) bool { return r.Recorded == nil })
}

// AnyRecorded reports whether the outcome of any claim of a Job is recorded.
func AnyRecorded(job *batchv1.Job) bool {
	h := jobs.HeadOf(job)
	return h.Version != 0 && h.Unrecorded < len(jobs.UIDs(job))
}
