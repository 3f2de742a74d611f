package cluster

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// published watches the dispatcher's CSIStorageCapacity objects, if any are to be published.
func (b *builder) published(namespace string, h Handlers) {
	if h.Capacity == nil {
		return
	}
	b.use(namespace, config.SelectManaged)
	b.caches.capacities = b.add(b.factory.Storage().V1().CSIStorageCapacities().Informer(), onChange(h.Capacity),
		cache.Indexers{byClass: func(obj any) ([]string, error) {
			return []string{obj.(*storagev1.CSIStorageCapacity).Labels[config.LabelClass]}, nil
		}})
	b.caches.synced = append(b.caches.synced, b.takeSynced()...)
}

// PublishesCapacity reports whether the dispatcher's CSIStorageCapacity objects are watched.
func (c *Caches) PublishesCapacity() bool { return c.capacities != nil }

// CapacitiesOf returns the CSIStorageCapacity objects of a class, by its label.
func (c *Caches) CapacitiesOf(label string) []*storagev1.CSIStorageCapacity {
	return ordered[*storagev1.CSIStorageCapacity](c.capacities.ByIndex(byClass, label))
}

// ClassesWithCapacity returns the labels of the classes that have CSIStorageCapacity objects.
func (c *Caches) ClassesWithCapacity() []string { return c.capacities.ListIndexFuncValues(byClass) }

// CSIDriver returns a CSIDriver as it is now, or nil. It is one object that hardly ever changes, so it is not watched.
func (c *Caches) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	driver, err := c.client.StorageV1().CSIDrivers().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil says that it does not exist
	}
	if err != nil {
		return nil, fmt.Errorf("look at the CSIDriver %s: %w", name, err)
	}
	return driver, nil
}
