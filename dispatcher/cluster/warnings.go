package cluster

import (
	"maps"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// warnings are the newest events about Jobs that do not start, by "namespace/name", as far as they were looked for.
// Events are not cached. A restart loses them, and each such Job is looked at again.
type warnings struct {
	mu    sync.Mutex
	byJob map[string]runs.Warning
}

// KeepWarning keeps the newest event about a Job that does not start, nil for none. What is in its way is in the way
// of others.
func (c *Caches) KeepWarning(job *batchv1.Job, w *runs.Warning) {
	c.warnings.mu.Lock()
	defer c.warnings.mu.Unlock()
	maps.DeleteFunc(c.warnings.byJob, func(key string, _ runs.Warning) bool {
		ns, name, _ := strings.Cut(key, "/")
		return !c.HasJob(ns, name)
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

// StuckOf returns why a Job makes no progress, as the caches and the kept event show it, or nil.
func (c *Caches) StuckOf(job *batchv1.Job, now time.Time) *runs.Stuck {
	c.warnings.mu.Lock()
	last, known := c.warnings.byJob[job.Namespace+"/"+job.Name]
	c.warnings.mu.Unlock()
	var warning *runs.Warning
	if known {
		warning = &last
	}
	stuck, _ := runs.StuckOf(job, c.PodsOf(job), warning, now)
	return stuck
}
