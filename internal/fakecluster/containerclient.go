package fakecluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// containerClient is the client of a container: each request waits for its move. client-go's fake
// clientset is locked while it reacts, so the wait comes before.
type containerClient struct {
	kubernetes.Interface
	container *Container
}

type containerCore struct {
	coreclient.CoreV1Interface
	container *Container
}

type containerPVs struct {
	coreclient.PersistentVolumeInterface
	container *Container
}

type containerSecrets struct {
	coreclient.SecretInterface
	container *Container
}

// CoreV1 is where PVs and Secrets are.
func (c containerClient) CoreV1() coreclient.CoreV1Interface {
	return containerCore{c.Interface.CoreV1(), c.container}
}

// PersistentVolumes are all PVs.
func (c containerCore) PersistentVolumes() coreclient.PersistentVolumeInterface {
	return containerPVs{c.CoreV1Interface.PersistentVolumes(), c.container}
}

// Secrets are those of a namespace.
func (c containerCore) Secrets(namespace string) coreclient.SecretInterface {
	return containerSecrets{c.CoreV1Interface.Secrets(namespace), c.container}
}

// Get gets a PV when a move lets it.
func (p containerPVs) Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.PersistentVolume, error) {
	if err := p.container.Request(ctx, "get PV "+name); err != nil {
		return nil, err
	}
	return p.PersistentVolumeInterface.Get(ctx, name, opts)
}

// Create creates a PV when a move lets it.
func (p containerPVs) Create(ctx context.Context, pv *corev1.PersistentVolume, opts metav1.CreateOptions) (*corev1.PersistentVolume, error) {
	if err := p.container.Request(ctx, "create PV "+pv.Name); err != nil {
		return nil, err
	}
	return p.PersistentVolumeInterface.Create(ctx, pv, opts)
}

// Create creates a Secret when a move lets it.
func (s containerSecrets) Create(ctx context.Context, secret *corev1.Secret, opts metav1.CreateOptions) (*corev1.Secret, error) {
	if err := s.container.Request(ctx, "create Secret "+secret.Name); err != nil {
		return nil, err
	}
	return s.SecretInterface.Create(ctx, secret, opts)
}

// Delete deletes a Secret when a move lets it.
func (s containerSecrets) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	if err := s.container.Request(ctx, "delete Secret "+name); err != nil {
		return err
	}
	return s.SecretInterface.Delete(ctx, name, opts)
}
