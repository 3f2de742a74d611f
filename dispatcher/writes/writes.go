package writes

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
)

// BehindFor is for how long the caches are waited for that do not show a write. After that the objects are read live.
const BehindFor = 30 * time.Second

// Log keeps what was written a moment ago, and what the caches have shown of it. What is decided on older objects would be written once more, and
// refused. Losing it at a restart costs such a write.
type Log struct {
	mu       sync.Mutex
	byObject map[types.UID]write
	// created holds the Jobs by the claim's UID, as "namespace/name".
	created map[types.UID]creation
	now     func() time.Time
	swept   time.Time
	// seen counts the creations that the caches have shown.
	seen uint64
}

// New returns a Log that keeps nothing yet.
func New(clk clock.PassiveClock) *Log {
	return &Log{byObject: map[types.UID]write{}, created: map[types.UID]creation{}, now: clk.Now}
}

type write struct {
	version string
	// deleted is set if the object is terminating or does not exist any more, gone if it certainly does not.
	deleted, gone bool
	at            time.Time
}

type creation struct {
	job string
	at  time.Time
	// seen is the number of this creation among those that the caches have shown, zero until they do.
	seen uint64
}

// Wrote notes that an object has been written, by the API server's answer. One that is being deleted does not exist any more once its last finalizer
// has been removed: the version of that answer may be an old one.
func (w *Log) Wrote(answer metav1.Object) {
	gone := answer.GetDeletionTimestamp() != nil && len(answer.GetFinalizers()) == 0
	w.note(answer.GetUID(), write{version: answer.GetResourceVersion(), gone: gone})
}

// Deleted notes that an object has been deleted.
func (w *Log) Deleted(obj metav1.Object) { w.note(obj.GetUID(), write{deleted: true}) }

func (w *Log) note(uid types.UID, what write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep()
	what.at = w.now()
	w.byObject[uid] = what
}

// CreatedJob notes that a Job exists, for all the claims that it serves. It reports whether the caches have not shown it in time before.
func (w *Log) CreatedJob(job *batchv1.Job) (overdue bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep()
	name := job.Namespace + "/" + job.Name
	for _, uid := range jobs.UIDs(job) {
		before, known := w.created[types.UID(uid)]
		overdue = overdue || known && before.job == name && before.seen == 0
		w.created[types.UID(uid)] = creation{job: name, at: w.now()}
	}
	return overdue
}

// sweep forgets what was written so long ago that Unseen's caller no longer waits for it.
func (w *Log) sweep() {
	if w.now().Sub(w.swept) < BehindFor {
		return
	}
	w.swept = w.now()
	for uid, what := range w.byObject {
		if w.now().Sub(what.at) > 2*BehindFor {
			delete(w.byObject, uid)
		}
	}
	for uid, what := range w.created {
		if w.now().Sub(what.at) > 2*BehindFor {
			delete(w.created, uid)
		}
	}
}

// Mark returns what Unseen needs to know of an observation. Call it before the caches are read.
func (w *Log) Mark() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// Unseen returns when a write was made that an observation does not show, zero if it shows all. The mark is of before the observation: the caches
// may have shown the write since, to another observation. Two workers observe at once, and a slow one once wrote what was written already.
func (w *Log) Unseen(o *observe.Observation, mark uint64) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.unseenJob(o, mark); !at.IsZero() {
		return at
	}
	for _, job := range o.Jobs {
		if at := w.unseen(job); !at.IsZero() {
			return at
		}
		for _, pod := range o.Pods[job.Name] {
			if at := w.unseen(pod); !at.IsZero() {
				return at
			}
		}
	}
	if o.PV != nil {
		if at := w.unseen(o.PV); !at.IsZero() {
			return at
		}
	}
	if o.Claim != nil {
		return w.unseen(o.Claim)
	}
	return time.Time{}
}

func (w *Log) unseenJob(o *observe.Observation, mark uint64) time.Time {
	created, waits := w.created[o.UID]
	if !waits {
		return time.Time{}
	}
	for _, job := range o.Jobs {
		if job.Namespace+"/"+job.Name != created.job {
			continue
		}
		if created.seen == 0 {
			w.seen++
			created.seen = w.seen
			w.created[o.UID] = created
		}
		return time.Time{}
	}
	if created.seen != 0 && created.seen <= mark { // it was shown, and does not exist any more
		delete(w.created, o.UID)
		return time.Time{}
	}
	return created.at
}

func (w *Log) unseen(obj metav1.Object) time.Time {
	what, waits := w.byObject[obj.GetUID()]
	if !waits || what.deleted && obj.GetDeletionTimestamp() != nil || !what.deleted && !what.gone && !isOlder(obj.GetResourceVersion(), what.version) {
		return time.Time{}
	}
	return what.at
}

// isOlder reports whether a version is older than another. Versions that cannot be compared are not.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
