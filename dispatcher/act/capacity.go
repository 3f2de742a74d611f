package act

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/capacity"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// DoCapacity writes what is published of a class's capacity. The new objects come first: with none of them for a node
// the scheduler places no pod of the class there.
func (a *Actor) DoCapacity(ctx context.Context, c observe.Capacity) (Result, error) {
	for _, obj := range c.Missing {
		_, err := a.Client.StorageV1().CSIStorageCapacities(obj.Namespace).Create(ctx, obj, metav1.CreateOptions{FieldManager: patch.FieldManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return Result{}, fmt.Errorf("create the CSIStorageCapacity %s of the class %s: %w", obj.Name, obj.StorageClassName, err)
		}
	}
	for _, obj := range c.Surplus {
		err := a.Client.StorageV1().CSIStorageCapacities(obj.Namespace).Delete(ctx, obj.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &obj.UID},
		})
		if _, err = patch.OutcomeOf(err, "delete the CSIStorageCapacity %s of the class %s", obj.Name, obj.StorageClassName); err != nil {
			return Result{}, err
		}
	}
	return a.requeueAt(c.Until), nil
}

// DoDriver lets the scheduler read the capacity that is published. driver is the CSIDriver of the provisioner, or nil.
// One that is not the dispatcher's is left alone.
func (a *Actor) DoDriver(ctx context.Context, driver *storagev1.CSIDriver) error {
	switch {
	case driver == nil:
		_, err := a.Client.StorageV1().CSIDrivers().Create(ctx, capacity.Driver(a.Provisioner), metav1.CreateOptions{FieldManager: patch.FieldManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create the CSIDriver %s: %w", a.Provisioner, err)
		}
		return nil
	case !capacity.IsOurs(driver):
		klog.FromContext(ctx).Error(nil, "A CSIDriver of the provisioner's name is not the dispatcher's, so the scheduler may not read the published capacity", "csidriver", driver.Name)
		return nil
	case capacity.IsPublishing(driver):
		return nil
	default:
		_, err := patch.Merge(ctx, a.Client.StorageV1().CSIDrivers(), driver, patch.Fields{"spec": patch.Fields{"storageCapacity": true}})
		_, err = patch.OutcomeOf(err, "let the scheduler read the capacity of the CSIDriver %s", driver.Name)
		return err
	}
}
