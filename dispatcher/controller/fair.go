package controller

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// fairQueue holds the UIDs or the Jobs that are to be reconciled, and takes one of each namespace
// in turn. A tenant can have any number of them enqueued by one write, such as on a claim that all
// of its claims clone. In a single queue the claims of others would wait for all of these.
type fairQueue[T comparable] struct {
	namespaceOf func(T) string
	waiting     map[string][]T
	turns       []string // the namespaces of those that wait, the next one first
	length      int
}

var _ workqueue.Queue[types.UID] = (*fairQueue[types.UID])(nil)

func newFairQueue[T comparable](namespaceOf func(T) string) *fairQueue[T] {
	return &fairQueue[T]{namespaceOf: namespaceOf, waiting: map[string][]T{}}
}

// Touch changes nothing for an item that waits already.
func (q *fairQueue[T]) Touch(T) {}

// Push adds an item behind those of its namespace.
func (q *fairQueue[T]) Push(item T) {
	namespace := q.namespaceOf(item)
	if len(q.waiting[namespace]) == 0 {
		q.turns = append(q.turns, namespace)
	}
	q.waiting[namespace] = append(q.waiting[namespace], item)
	q.length++
}

// Len returns how many items wait.
func (q *fairQueue[T]) Len() int { return q.length }

// Pop removes the first item of the next namespace. There is one.
func (q *fairQueue[T]) Pop() T {
	namespace := q.turns[0]
	q.turns = q.turns[1:]
	item, others := q.waiting[namespace][0], q.waiting[namespace][1:]
	delete(q.waiting, namespace)
	if len(others) > 0 {
		q.waiting[namespace] = others
		q.turns = append(q.turns, namespace)
	}
	q.length--
	return item
}

// namespaceOf returns the namespace of the claim with a UID, also if only its PV or a Job is left, or
// nothing.
func (c *Controller) namespaceOf(uid types.UID) string {
	if claim := c.caches.ClaimOf(uid); claim != nil {
		return claim.Namespace
	}
	if pv := c.caches.PVs.Named(contract.PVName(string(uid))); pv != nil && pv.Spec.ClaimRef != nil {
		return pv.Spec.ClaimRef.Namespace
	}
	for _, job := range c.caches.Jobs.By(cluster.ByUID, string(uid)) {
		return jobs.FirstNamespace(job)
	}
	return ""
}

// namespaceOfJob returns the namespace of the first claim that a Job serves, or nothing.
func (c *Controller) namespaceOfJob(key string) string {
	if job := c.caches.Jobs.Named(key); job != nil {
		return jobs.FirstNamespace(job)
	}
	return ""
}
