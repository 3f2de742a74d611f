package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// warnings are the newest events about Jobs that do not start, by "namespace/name", as far as they were looked for.
// Events are not cached. A restart loses them, and each such Job is looked at again.
type warnings struct {
	mu    sync.Mutex
	byJob map[string]runs.Warning
	reads flowcontrol.PassiveRateLimiter
}

// An API server reads all events of a namespace to find those about one object. Two hundred Jobs that started slowly, as it was busy, made it five times
// as busy by that. What is in the way of one Job is in the way of others, so ten are looked up at once, and then one a second.
const (
	warningReads = 1 // a second
	warningBurst = 10
)

// KeepWarning keeps the newest event about a Job that does not start, nil for none. What is in its way is in the way
// of others.
func (c *Caches) KeepWarning(job *batchv1.Job, w *runs.Warning) {
	c.warnings.mu.Lock()
	defer c.warnings.mu.Unlock()
	maps.DeleteFunc(c.warnings.byJob, func(key string, _ runs.Warning) bool {
		return c.Jobs.Named(key) == nil
	})
	key := job.Namespace + "/" + job.Name
	if w == nil {
		delete(c.warnings.byJob, key)
		return
	}
	if c.warnings.byJob == nil {
		c.warnings.byJob = map[string]runs.Warning{}
	}
	c.warnings.byJob[key] = *w
}

// WarningAbout returns the newest Warning event about a Job or its pod, by the UID of either, or nil. It asks the API server, since events are many and are
// not cached. Where it asks too often it returns what was kept for the Job.
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
	c.warnings.mu.Lock()
	defer c.warnings.mu.Unlock()
	if last, known := c.warnings.byJob[job.Namespace+"/"+job.Name]; known {
		return &last
	}
	return nil
}

// StuckOf returns why a Job makes no progress, as the caches and the kept event show it, or nil.
func (c *Caches) StuckOf(job *batchv1.Job, now time.Time) *runs.Stuck {
	stuck, _ := runs.StuckOf(job, c.PodsOf(job), c.keptWarning(job), now)
	return stuck
}
