package cluster

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// warnings are the newest events about Jobs that do not start, by "namespace/name", as far as they
// were looked for. Events are not cached. A restart loses them, and each such Job is looked at
// again.
type warnings struct {
	byJob *cache.LRUExpireCache
	reads flowcontrol.PassiveRateLimiter
}

func newWarnings(reads flowcontrol.PassiveRateLimiter) warnings {
	return warnings{byJob: cache.NewLRUExpireCache(mostWarnings), reads: reads}
}

// An API server reads all events of a namespace to find those about one object. Two hundred Jobs
// that started slowly, as it was busy, made it five times as busy by that. What is in the way of
// one Job is in the way of others, so ten are looked up at once, and then one a second.
const (
	warningReads = 1 // a second
	warningBurst = 10
)

// mostWarnings is of how many Jobs the newest event is kept, and warningKept for how long.
const (
	mostWarnings = 1000
	warningKept  = time.Hour
)

// KeepWarning keeps the newest event about a Job that does not start, nil for none. What is in its
// way is in the way of others.
func (c *Caches) KeepWarning(job *batchv1.Job, w *runs.Warning) {
	key := job.Namespace + "/" + job.Name
	if w == nil {
		c.warnings.byJob.Remove(key)
		return
	}
	c.warnings.byJob.Add(key, *w, warningKept)
}

// WarningAbout returns the newest Warning event about a Job or its pod, by the UID of either, or
// nil. It asks the API server, since events are many and are not cached. Where it asks too often it
// returns what was kept for the Job.
func (c *Caches) WarningAbout(ctx context.Context, job *batchv1.Job, uid types.UID) (*runs.Warning, error) {
	if !c.warnings.reads.TryAccept() {
		return c.keptWarning(job), nil
	}
	namespace := job.Namespace
	list, err := c.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}.String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the events of a Job in %s that does not start: %w", namespace, err)
	}
	return runs.NewestWarning(list.Items), nil
}

// keptWarning returns the newest event about a Job that was found before, or nil.
func (c *Caches) keptWarning(job *batchv1.Job) *runs.Warning {
	last, known := c.warnings.byJob.Get(job.Namespace + "/" + job.Name)
	if !known {
		return nil
	}
	return new(last.(runs.Warning))
}

// StuckOf returns why a Job makes no progress, as the caches and the kept event show it, or nil.
func (c *Caches) StuckOf(job *batchv1.Job, now time.Time) *runs.Stuck {
	stuck, _ := runs.StuckOf(job, c.PodsOf(job), c.keptWarning(job), now)
	return stuck
}
