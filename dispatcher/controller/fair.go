package controller

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// fairQueue holds the UIDs that are to be reconciled, and takes one of each namespace in turn. A tenant
// can have any number of them enqueued by one write, such as on a claim that all of its claims clone:
// in one line, the claims of others waited for a minute.
type fairQueue struct {
	namespaceOf func(types.UID) string
	waiting     map[string][]types.UID
	turns       []string // the namespaces of those that wait, the next one first
	length      int
}

var _ workqueue.Queue[types.UID] = (*fairQueue)(nil)

// Touch changes nothing for a UID that waits already.
func (q *fairQueue) Touch(types.UID) {}

// Push adds a UID behind those of its namespace.
func (q *fairQueue) Push(uid types.UID) {
	namespace := q.namespaceOf(uid)
	if len(q.waiting[namespace]) == 0 {
		q.turns = append(q.turns, namespace)
	}
	q.waiting[namespace] = append(q.waiting[namespace], uid)
	q.length++
}

// Len returns how many UIDs wait.
func (q *fairQueue) Len() int { return q.length }

// Pop removes the first UID of the next namespace. There is one.
func (q *fairQueue) Pop() types.UID {
	namespace := q.turns[0]
	q.turns = q.turns[1:]
	uid, others := q.waiting[namespace][0], q.waiting[namespace][1:]
	delete(q.waiting, namespace)
	if len(others) > 0 {
		q.waiting[namespace] = others
		q.turns = append(q.turns, namespace)
	}
	q.length--
	return uid
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
