package slots

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// holder is a Job, or a pod whose Job no longer exists, that holds a slot.
type holder struct {
	Flow
	name string
	// parallel is how many slots it holds.
	parallel int
	// overdueOn is the node that has not ended it although it is past its deadline, if it is.
	overdueOn string
}

// Holders names the Jobs and pods that hold the slots of a class, of which it has limit, those first
// that are past their deadline: they are what an administrator can do something about.
func (s *Slots) Holders(at ClassKey, limit int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, h := range s.holders(at, limit) {
		if h.parallel > 1 {
			h.name += fmt.Sprintf(" (%d scripts)", h.parallel)
		}
		if h.overdueOn != "" {
			h.name += fmt.Sprintf(" (past its deadline, and the node %s has not ended it)", h.overdueOn)
		}
		out = append(out, h.name)
	}
	return out
}

// Used returns how many of the slots of a class are held, of which it has limit.
func (s *Slots) Used(at ClassKey, limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := 0
	for _, h := range s.holders(at, limit) {
		used += h.parallel
	}
	return used
}

// holders returns what holds one of a class's slots: the Jobs that do and, of those that have finished
// or no longer exist, the pods at work. Of what nodes have not ended in time only so many hold one
// as leave half of the slots to others: a kubelet that reports no end once kept a class from all
// service, and then two did (TestRunsThatOneNodeNeverEndsLeaveHalfOfTheSlots,
// TestOverdueJobsOfAllNodesLeaveHalfOfTheSlots). They may be more containers than max-parallel, if
// those nodes live.
func (s *Slots) holders(at ClassKey, limit int) []holder {
	half, overdue := (limit+1)/2, 0
	return slices.DeleteFunc(s.allHolders(at), func(h holder) bool {
		if h.overdueOn != "" {
			overdue += h.parallel
		}
		return h.overdueOn != "" && overdue > half
	})
}

// allHolders returns the holders without regard to how many are overdue, those first.
func (s *Slots) allHolders(at ClassKey) []holder {
	counted, now := map[string]holder{}, s.clock.Now()
	count := func(job *batchv1.Job, pods []*corev1.Pod) {
		counted[job.Name] = holder{flowOf(job), job.Name, jobs.ParallelOf(job), runs.OverdueOn(job, pods, now)}
	}
	for _, job := range s.caches.Jobs.In(at.Namespace).By(cluster.ByUnfinished, at.Label) {
		if pods := s.caches.PodsOf(job); runs.HoldsSlot(job, pods, now) {
			count(job, pods)
		}
	}
	for _, pod := range s.caches.Pods.In(at.Namespace).By(cluster.ByUnfinished, at.Label) {
		name := pod.Labels[batchv1.JobNameLabel]
		if _, known := counted[name]; known || !runs.IsAtWork(pod, now) {
			continue
		}
		if job := s.caches.Jobs.Named(at.Namespace + "/" + name); job != nil {
			count(job, s.caches.PodsOf(job))
			continue
		}
		h := holder{Flow: Flow{Verb: contract.Verb(pod.Labels[jobs.LabelVerb])}, name: "pod " + pod.Name, parallel: jobs.ParallelOf(pod)}
		if runs.IsOverdue(pod, now) {
			h.overdueOn = pod.Spec.NodeName
		}
		counted[h.name] = h
	}
	return slices.SortedFunc(maps.Values(counted), func(x, y holder) int {
		return cmp.Or(-cmp.Compare(x.overdueOn, y.overdueOn), cmp.Compare(x.name, y.name))
	})
}

// HoldsSlot reports whether a Job uses a slot of its class: until the containers of its pod have
// ended, also while it cannot start. It may start at any moment, and then no more containers than
// the class allows may be at work.
func (s *Slots) HoldsSlot(job *batchv1.Job) bool {
	return runs.HoldsSlot(job, s.caches.PodsOf(job), s.clock.Now())
}
