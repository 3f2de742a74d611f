package cluster

import (
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// BehindFor is for how long the caches are waited for that do not show a write. After that the
// objects are read live.
const BehindFor = 30 * time.Second

// Written keeps what was written for each UID a moment ago, until the caches show it. What is
// decided on older objects would be written once more, and refused. Losing it at a restart costs
// such a write. Kubernetes' own controllers ask their caches in the same way before they read them:
// pkg/controller/util/consistency.
type Written struct {
	caches *Caches
	clock  clock.PassiveClock

	mu    sync.Mutex
	byUID map[types.UID]expected
	swept time.Time
}

// expected is what the caches are to show of a UID, and when the last of it was written.
type expected struct {
	shown []func() bool
	at    time.Time
}

// NewWritten returns a Written that keeps nothing yet.
func NewWritten(caches *Caches, clk clock.PassiveClock) *Written {
	return &Written{caches: caches, clock: clk, byUID: map[types.UID]expected{}}
}

// Wrote notes that an object has been written, by the API server's answer.
func (w *Written) Wrote(answer metav1.Object) {
	store := w.caches.indexerOf(answer)
	if store == nil {
		return // no cache watches it, so none will show it
	}
	if answer.GetDeletionTimestamp() != nil && len(answer.GetFinalizers()) == 0 { // it was deleted with its last finalizer, and the answer has an older version
		w.expect(answer, func() bool { return find(store, answer) == nil })
		return
	}
	version := answer.GetResourceVersion()
	w.expect(answer, func() bool { return !isOlder(store.LastStoreSyncResourceVersion(), version) })
}

// Deleted notes that an object has been deleted. The API server's answer to that has no version.
func (w *Written) Deleted(obj metav1.Object) {
	store := w.caches.indexerOf(obj)
	w.expect(obj, func() bool {
		kept := find(store, obj)
		return kept == nil || kept.GetDeletionTimestamp() != nil
	})
}

// Exists notes that a Job that was to be created exists, in a version that is unknown. It reports
// whether the caches should have shown it by now.
func (w *Written) Exists(job *batchv1.Job) (overdue bool) {
	store := w.caches.indexerOf(job)
	isShown := func() bool {
		_, is, err := store.GetByKey(job.Namespace + "/" + job.Name)
		return is || err != nil
	}
	since := w.Since(types.UID(jobs.UIDs(job)[0]))
	overdue = !since.IsZero() && w.clock.Since(since) >= BehindFor && !isShown()
	w.expect(job, isShown)
	return overdue
}

// Since returns when something was written for a UID, or for a Job by its key, that the caches do not
// show yet, zero if they show all. Ask before they are read.
func (w *Written) Since(uid types.UID) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.byUID[uid]
	if !ok {
		return time.Time{}
	}
	if e.shown = slices.DeleteFunc(e.shown, func(isShown func() bool) bool { return isShown() }); len(e.shown) == 0 {
		delete(w.byUID, uid)
		return time.Time{}
	}
	w.byUID[uid] = e
	return e.at
}

// expect notes what the caches are to show of an object, for every UID that it concerns.
func (w *Written) expect(obj metav1.Object, isShown func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if now.Sub(w.swept) > BehindFor {
		w.swept = now
		for uid, e := range w.byUID {
			if now.Sub(e.at) > 2*BehindFor {
				delete(w.byUID, uid)
			}
		}
	}
	for _, uid := range w.concernedBy(obj) {
		e := w.byUID[types.UID(uid)]
		w.byUID[types.UID(uid)] = expected{append(e.shown, isShown), now}
	}
}

// concernedBy returns the UIDs that an object concerns, and the key of the Job that it is or belongs to.
// The pod of a Job concerns claims only if that Job no longer exists: their loop writes on it then.
func (w *Written) concernedBy(obj metav1.Object) []string {
	switch obj := obj.(type) {
	case *batchv1.Job:
		return append(jobs.UIDs(obj), KeyOf(obj))
	case *corev1.Pod:
		key := obj.Namespace + "/" + obj.Labels[batchv1.JobNameLabel]
		if w.caches.Jobs.Named(key) != nil {
			return []string{key}
		}
		return append(jobs.UIDsOfPod(obj), key)
	case *corev1.PersistentVolume:
		return append(pvs.Owners(obj), strings.TrimPrefix(obj.Name, contract.PVName("")))
	default:
		return []string{string(obj.GetUID())}
	}
}

// find returns an object as a store has it, or nil if it has none or another one of its name.
func find(store cache.Indexer, obj metav1.Object) metav1.Object {
	key, _ := cache.MetaNamespaceKeyFunc(obj)
	kept, is, err := store.GetByKey(key)
	if err != nil || !is || kept.(named).GetUID() != obj.GetUID() {
		return nil
	}
	return cut.Whole(kept).(metav1.Object)
}

// isOlder reports whether a version is older than another. Versions that cannot be compared are
// not.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
