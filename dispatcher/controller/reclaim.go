package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// reclaim keeps a PV, or lets it go.
func (c *Controller) reclaim(ctx context.Context, o *observation, action decide.Action) error {
	switch a := action.(type) { //nolint:gochecksumtype // act sends these here, and has the others
	case decide.AddFinalizer:
		return c.setFinalizers(ctx, o.pv, append(slices.Clone(o.pv.Finalizers), contract.FinalizerStorage))
	case decide.RemoveFinalizer:
		return c.unhold(ctx, o, a)
	case decide.DeleteUnboundPV:
		return c.withdraw(ctx, o)
	case decide.DeletePV:
		return c.remove(ctx, o.pv)
	default:
		return fmt.Errorf("no hand for the action %T", action)
	}
}

// setFinalizers replaces a PV's finalizers, unless somebody has changed the PV meanwhile.
func (c *Controller) setFinalizers(ctx context.Context, pv *corev1.PersistentVolume, finalizers []string) error {
	b, err := finalizersPatch(pv, finalizers)
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, b, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("set the finalizers of the PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}

// withdraw deletes a PV that has just been seen to be unbound, unless it has changed since: it may be bound
// by now.
func (c *Controller) withdraw(ctx context.Context, o *observation) error {
	err := c.client.CoreV1().PersistentVolumes().Delete(ctx, o.pv.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &o.pv.UID, ResourceVersion: &o.pv.ResourceVersion},
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // the watch brings what it is now
	case err != nil:
		return fmt.Errorf("withdraw the PersistentVolume %s: %w", o.pv.Name, err)
	}
	c.event(o.claim, o.pv, corev1.EventTypeWarning, reasonWithdrawn, o.view.Volume.Mismatch+": it is deleted with its volume, and the claim is served anew")
	return nil
}

// remove deletes a PV. Our finalizer holds it until the next step takes that off, so that a crash
// between the two leaves a PV which says that its volume is gone, not one that knows nothing.
func (c *Controller) remove(ctx context.Context, pv *corev1.PersistentVolume) error {
	err := c.client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &pv.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}

// unhold lets go of a PV, and tells of a volume that is given up with it.
func (c *Controller) unhold(ctx context.Context, o *observation, a decide.RemoveFinalizer) error {
	err := c.setFinalizers(ctx, o.pv, without(o.pv.Finalizers, contract.FinalizerStorage))
	if err == nil && a.LeftBehind != "" {
		c.event(o.pv, nil, corev1.EventTypeWarning, reasonLeft, "its volume stays in the storage where it is, since "+a.LeftBehind)
	}
	return err
}
