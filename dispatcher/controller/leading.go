package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// What a new leader does before its workers start.

// noteNamespacesAgain is how soon the config namespaces are noted again where that failed. A leader
// that cannot write on its lease loses it.
const noteNamespacesAgain = time.Second

// noteNamespaces notes on the lease which config namespaces are served, until it is written or ctx
// ends. In a namespace that an earlier leader served, and this one does not, claims may have Jobs
// that no cache shows.
func (c *Controller) noteNamespaces(ctx context.Context) {
	for c.opts.NoteNamespaces != nil && ctx.Err() == nil {
		err := c.noteDropped(ctx)
		if err == nil {
			return
		}
		klog.FromContext(ctx).Error(err, "Failed to record the config namespaces; trying again")
		c.pause(ctx, noteNamespacesAgain)
	}
}

// noteDropped notes the config namespaces once, and reports those that were dropped.
func (c *Controller) noteDropped(ctx context.Context) error {
	lease, dropped, err := c.opts.NoteNamespaces(ctx)
	if err != nil {
		return err
	}
	if !c.caches.SetDropped(cluster.Dropped{Namespaces: dropped, Lease: lease.Namespace + "/" + lease.Name}) {
		return nil
	}
	if len(dropped) > 0 {
		klog.FromContext(ctx).Error(nil, "Config namespaces that were served before are missing from --config-namespaces", "namespaces", dropped)
		c.actor.ReportDropped(lease, strings.Join(dropped, ", "))
	}
	c.enqueueClasses()
	return nil
}

// recheckDropped looks again for the namespaces that were dropped: an administrator may have taken
// them out of the lease's annotation.
func (c *Controller) recheckDropped(ctx context.Context) {
	for len(c.caches.Dropped().Namespaces) > 0 && ctx.Err() == nil {
		c.pause(ctx, accessRecheck)
		c.noteNamespaces(ctx)
	}
}

// How long a new leader waits for its cache of Jobs, and how often it looks.
const (
	awaitJobsFor   = 5 * time.Second
	awaitJobsEvery = 50 * time.Millisecond
)

// awaitJobs waits until the cache shows the Jobs of each config namespace as they were when this
// replica began to lead, or for a while. Without it nothing would be run twice, since every pod is
// gated, but Jobs of the last leader would be created and cancelled again.
func (c *Controller) awaitJobs(ctx context.Context) {
	if c.opts.ListJobs == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, awaitJobsFor)
	defer stop()
	lists := map[string]*metav1.PartialObjectMetadataList{}
	for _, ns := range c.opts.Namespaces {
		list, err := c.opts.ListJobs(ctx, ns)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Failed to list the Jobs that an earlier leader may have created", "namespace", ns)
			continue
		}
		lists[ns] = list
	}
	for ctx.Err() == nil {
		if !slices.ContainsFunc(c.opts.Namespaces, func(ns string) bool { return lists[ns] != nil && !c.caches.ShowJobs(ns, lists[ns]) }) {
			return
		}
		c.pause(ctx, awaitJobsEvery)
	}
}

// pause waits, or until ctx ends.
func (c *Controller) pause(ctx context.Context, d time.Duration) {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
