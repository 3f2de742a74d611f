package controller

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// driverKey is the key of the CSIDriver in the queue of capacities. No class has an empty label.
const driverKey = ""

// How often the CSIDriver is looked at: again and again, and soon while a class lacks objects.
const (
	driverRecheck = time.Minute
	driverRetry   = time.Second
)

// enqueueCapacity enqueues the capacity of a class, by its label.
func (c *Controller) enqueueCapacity(label string) {
	if c.opts.PublishCapacity && c.leading.Load() {
		c.capacities.Add(label)
	}
}

// enqueueCapacities enqueues all that is published, or is to be.
func (c *Controller) enqueueCapacities() {
	if !c.opts.PublishCapacity {
		return
	}
	for _, class := range c.caches.Classes() {
		c.enqueueCapacity(config.ClassLabel(class.Name))
	}
	for _, label := range c.caches.ClassesWithCapacity() {
		c.enqueueCapacity(label)
	}
	c.enqueueCapacity(driverKey)
}

// enqueueFull enqueues the capacity of a Job's class if a run of the Job has found its node full.
func (c *Controller) enqueueFull(job *batchv1.Job) {
	if c.opts.PublishCapacity && c.leading.Load() && c.observer.IsFull(job) {
		c.enqueueCapacity(job.Labels[config.LabelClass])
	}
}

// capacityChanged also enqueues the claims of the class that may wait until the capacity is published.
func (c *Controller) capacityChanged(obj *storagev1.CSIStorageCapacity) {
	label := obj.Labels[config.LabelClass]
	c.enqueueCapacity(label)
	for _, claim := range c.caches.ClaimsOfClass(label) {
		if claim.Spec.VolumeName == "" && claim.Annotations[storagehelpers.AnnSelectedNode] != "" {
			c.enqueue(claim.UID)
		}
	}
}

// processNextCapacity publishes the capacity of the next class of its queue. It returns false when the queue is shut
// down.
func (c *Controller) processNextCapacity(ctx context.Context) bool {
	label, quit := c.capacities.Take(ctx)
	if quit {
		return false
	}
	defer c.capacities.Done(label)
	var requeueAfter time.Duration
	err := c.recovering(ctx, "capacity "+label, func() (err error) {
		requeueAfter, err = c.reconcileCapacity(ctx, label)
		return err
	})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			klog.FromContext(ctx).Error(err, "Failed to publish capacity", "class", label)
		}
		c.capacities.AddRateLimited(label)
		return true
	}
	c.capacities.Forget(label)
	if requeueAfter > 0 {
		c.capacities.AddAfter(label, requeueAfter)
	}
	return true
}

// reconcileCapacity writes what is to be published of a class, or the CSIDriver. It returns when to do that again.
func (c *Controller) reconcileCapacity(ctx context.Context, label string) (time.Duration, error) {
	if label == driverKey {
		return c.reconcileDriver(ctx)
	}
	result, err := c.actor.DoCapacity(ctx, c.observer.ObserveCapacity(label))
	return result.RequeueAfter, err
}

// reconcileDriver creates the CSIDriver once every class has its objects. From then on the scheduler places no pod of
// a class without objects.
func (c *Controller) reconcileDriver(ctx context.Context) (time.Duration, error) {
	driver, err := c.caches.CSIDriver(ctx, c.opts.Provisioner)
	if err != nil {
		return 0, err
	}
	for _, class := range c.caches.Classes() {
		label := config.ClassLabel(class.Name)
		if driver == nil && c.observer.Publishes(class) && len(c.caches.CapacitiesOf(label)) == 0 {
			return driverRetry, nil
		}
	}
	return driverRecheck, c.actor.DoDriver(ctx, driver)
}
