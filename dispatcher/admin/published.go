package admin

import (
	"context"
	"fmt"
	"io"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/capacity"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// Published is what --publish-capacity has made for a provisioner.
type Published struct {
	Driver     *storagev1.CSIDriver // nil if there is none of the dispatcher's
	Capacities []storagev1.CSIStorageCapacity
}

func (p *Published) survey(ctx context.Context, client kubernetes.Interface, provisioner string) error {
	drivers, err := client.StorageV1().CSIDrivers().List(ctx, metav1.ListOptions{LabelSelector: config.SelectManaged})
	if err != nil {
		return fmt.Errorf("list the CSIDrivers: %w", err)
	}
	for _, driver := range drivers.Items {
		if driver.Name == provisioner && capacity.IsOurs(&driver) {
			p.Driver = &driver
		}
	}
	all, err := client.StorageV1().CSIStorageCapacities(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: config.SelectManaged})
	if err != nil {
		return fmt.Errorf("list the CSIStorageCapacities: %w", err)
	}
	for _, obj := range all.Items {
		if !pvs.OfAnotherProvisioner(obj.Annotations, provisioner) {
			p.Capacities = append(p.Capacities, obj)
		}
	}
	return nil
}

func (p *Published) list(w io.Writer) error {
	if p.Driver == nil && len(p.Capacities) == 0 {
		return nil
	}
	drivers := 0
	if p.Driver != nil {
		drivers = 1
	}
	_, err := fmt.Fprintf(w, "%d CSIDriver and %d CSIStorageCapacities of the dispatcher are deleted\n", drivers, len(p.Capacities))
	return err
}

// remove deletes the CSIDriver first: while it exists, the scheduler places no pod of a class without objects. So the
// objects stay where it cannot be deleted.
func (p *Published) remove(ctx context.Context, client kubernetes.Interface) error {
	if p.Driver != nil {
		err := client.StorageV1().CSIDrivers().Delete(ctx, p.Driver.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.Driver.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the CSIDriver %s: %w", p.Driver.Name, err)
		}
	}
	for _, obj := range p.Capacities {
		err := client.StorageV1().CSIStorageCapacities(obj.Namespace).Delete(ctx, obj.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the CSIStorageCapacity %s/%s: %w", obj.Namespace, obj.Name, err)
		}
	}
	return nil
}
