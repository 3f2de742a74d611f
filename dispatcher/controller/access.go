package controller

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// accessRecheck is how often the dispatcher asks again what it may do in the further config
// namespaces.
const accessRecheck = time.Minute

// recheckAccess checks the access again and again until ctx ends. A RoleBinding may be deleted or
// created at any time.
func (c *Controller) recheckAccess(ctx context.Context) {
	ticker := c.clock.NewTicker(accessRecheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.checkAccess(ctx)
		}
	}
}

// checkAccess finds out which permissions the dispatcher lacks in the further config namespaces.
// Without them the classes of that namespace are not served, and those of all others are. Whatever
// may wait for it is enqueued when that changes.
func (c *Controller) checkAccess(ctx context.Context) {
	if c.opts.MissingIn == nil {
		return
	}
	for _, ns := range c.opts.Namespaces[1:] {
		missing, err := c.opts.MissingIn(ctx, ns)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Failed to check the dispatcher's permissions in a config namespace", "namespace", ns)
			continue
		}
		c.noteAccess(ctx, ns, missing)
	}
}

// noteAccess records which permissions are missing in a namespace. Once none are, the caches still
// have to be filled before it is served again.
func (c *Controller) noteAccess(ctx context.Context, ns, missing string) {
	switch changed := c.caches.SetMissing(ns, missing); {
	case missing != "" && changed:
		klog.FromContext(ctx).Error(nil, "Stopped serving the classes of a config namespace: permissions are missing", "namespace", ns, "missing", missing)
		c.unserved[ns] = true
		c.enqueueClasses()
	case missing == "" && c.unserved[ns] && c.caches.WhyUnserved(ns) == "":
		klog.FromContext(ctx).Info("Serving the classes of a config namespace again", "namespace", ns)
		delete(c.unserved, ns)
		c.enqueueClasses()
	}
}
