package runs

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How long a Job is kept when its record is released: long enough for a person to look at a
// failure.
const (
	keepDone   = 5 * time.Minute
	keepMany   = 15 * time.Minute // longer than any pause: the next run of the claim counts the attempts that it can see
	keepFailed = time.Hour
)

// MaxHistory is how many failed Jobs of a class are kept for the whole time, as its history. When
// the storage is down, thousands of runs fail in an hour for one reason, and each Job with its pod
// is in the memory of every replica. A person does not read more than these.
const MaxHistory = 50

// KeepFor returns how long after its end a Job is to be kept that is released now. full is set if
// MaxHistory failed Jobs of its class are kept. Kubernetes counts from the end, so a Job that was
// held for long would expire before a person could look at it. A Job whose pod may still run is
// what keeps the next run from being launched: it is kept for longer than that, however many there
// are.
func KeepFor(out Outcome, now time.Time, succeeded, full bool) time.Duration {
	keep := keepFailed
	switch {
	case succeeded:
		keep = keepDone
	case full && out.MayRunUntil.IsZero():
		keep = keepMany
	}
	return max(keep+max(now.Sub(out.Finished), 0), keepDone+out.MayRunUntil.Sub(out.Finished))
}

// IsHistory reports whether a Job is kept for the whole time that a failed one is: it is the record
// of no claim any more.
func IsHistory(job *batchv1.Job) bool {
	ttl := job.Spec.TTLSecondsAfterFinished
	return ttl != nil && !IsRecord(job) && time.Duration(*ttl)*time.Second >= keepFailed
}

// ExpiresAtOnce reports whether a Job that is a record has a shorter time to live than the dispatcher
// sets: a policy lets Jobs expire. Such a Job vanishes when its record is released, before anything
// else could follow.
func ExpiresAtOnce(job *batchv1.Job) bool {
	ttl := job.Spec.TTLSecondsAfterFinished
	return ttl != nil && IsRecord(job) && time.Duration(*ttl)*time.Second < keepDone
}

// ExpiresAt returns when a Job that is a record no more is deleted, zero if that is not known.
func ExpiresAt(job *batchv1.Job) time.Time {
	end, ttl := FinishedAt(job), job.Spec.TTLSecondsAfterFinished
	if end.IsZero() || ttl == nil || IsRecord(job) {
		return time.Time{}
	}
	return end.Add(time.Duration(*ttl) * time.Second)
}

// FinishedAt returns when a Job became Complete or Failed, zero if it is neither.
func FinishedAt(job *batchv1.Job) metav1.Time {
	if c := finishedCondition(job); c != nil {
		return c.LastTransitionTime
	}
	return metav1.Time{}
}

// EndedBy returns an outcome with another end if its own is in the future: the clock of a node, or
// of an earlier leader, was ahead. Until then no retry would be due. The new end is a time that has
// passed by the API server's clock, from which the pauses between retries are kept.
func EndedBy(o Outcome, now, known time.Time) Outcome {
	if o.Finished.After(now) {
		o.Finished = known
	}
	return o
}
