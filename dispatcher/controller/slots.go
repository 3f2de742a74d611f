package controller

import (
	"sync"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// slots are what the cache does not show of the Jobs that count: those launched a moment ago, since
// workers that look at the same moment would launch too many between them, and those whose slot others
// were told to take. They are no memory: after a restart the caches are filled before anything is launched.
type slots struct {
	mu       sync.Mutex
	launched map[string]string // class label by the Job's "namespace/name"
	stuck    map[string]bool   // Jobs that gave their slot to others, who were told
}

// slot tells whether a class may start another Job, by the cache alone: whoever is told no is woken when
// one of the Jobs there ends, and by nothing else.
func (c *Controller) slot(cfg config.Config) bool {
	return c.unfinished(cfg, nil) < cfg.MaxParallel
}

// take keeps a slot for a Job that is about to be launched, if there is one.
func (c *Controller) take(cfg config.Config, job *batchv1.Job) bool {
	c.slots.mu.Lock()
	defer c.slots.mu.Unlock()
	if c.unfinished(cfg, c.slots.launched) >= cfg.MaxParallel {
		return false
	}
	c.slots.launched[key(job)] = config.ClassLabel(cfg.Source.Class)
	return true
}

// unfinished counts a class's Jobs, with those launched ones that the cache does not show yet.
func (c *Controller) unfinished(cfg config.Config, launched map[string]string) int {
	label, n := config.ClassLabel(cfg.Source.Class), 0
	counted := map[string]bool{}
	for _, obj := range indexed(c.caches.spaces[cfg.Source.Namespace].jobs, label) {
		job := obj.(*batchv1.Job)
		counted[key(job)] = true
		if c.progresses(job) {
			n++
		}
	}
	for name, class := range launched {
		if class == label && !counted[name] {
			n++
		}
	}
	return n
}

// seen: the cache shows the Job, or it was not made after all.
func (s *slots) seen(job *batchv1.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.launched, key(job))
	delete(s.stuck, key(job))
}

// isStuck notes whether a Job cannot start, and tells whether it is news that it cannot.
func (s *slots) isStuck(job *batchv1.Job, stuck bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.stuck[key(job)]
	if stuck {
		s.stuck[key(job)] = true
	} else {
		delete(s.stuck, key(job))
	}
	return stuck && !known
}

func key(job *batchv1.Job) string { return job.Namespace + "/" + job.Name }
