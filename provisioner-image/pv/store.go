package pv

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Store writes to Kubernetes. It needs get and create on PersistentVolumes, and create and delete
// on Secrets. It does not read Secrets: RBAC cannot restrict reading to names that are made at run
// time.
type Store struct{ kube kubernetes.Interface }

// NewStore returns a Store over a client.
func NewStore(kube kubernetes.Interface) *Store { return &Store{kube: kube} }

// Get returns the PV of this name, or nil.
func (s *Store) Get(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	pv, err := s.kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get PV %s: %w", name, err)
	}
	return pv, nil
}

// Create creates the PV and returns the one that exists then: another run of the same claim may
// have created it first.
func (s *Store) Create(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	made, err := s.kube.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	if err == nil {
		return made, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create PV %s: %w", pv.Name, err)
	}
	made, err = s.Get(ctx, pv.Name)
	if err == nil && made == nil {
		err = fmt.Errorf("create PV %s: it existed, and was deleted meanwhile", pv.Name)
	}
	return made, err
}

// CheckOwner returns an error if the PV is not the claim's.
func CheckOwner(pv *corev1.PersistentVolume, uid string) error {
	if owner := pv.Annotations[contract.AnnClaimUID]; owner != uid {
		return fmt.Errorf("PV %s exists, but belongs to another claim than %s: its annotation %s is %q",
			pv.Name, uid, contract.AnnClaimUID, owner)
	}
	return nil
}

// PutSecret creates the Secret. An existing one is replaced, since it may hold the credentials of
// an earlier connection.
func (s *Store) PutSecret(ctx context.Context, secret *corev1.Secret) error {
	err := s.createSecret(ctx, secret)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := s.DeleteSecret(ctx, corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}); err != nil {
		return err
	}
	return s.createSecret(ctx, secret)
}

func (s *Store) createSecret(ctx context.Context, secret *corev1.Secret) error {
	_, err := s.kube.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// DeleteSecret deletes the Secret. A Secret that does not exist counts as deleted.
func (s *Store) DeleteSecret(ctx context.Context, at corev1.SecretReference) error {
	err := s.kube.CoreV1().Secrets(at.Namespace).Delete(ctx, at.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Secret %s/%s: %w", at.Namespace, at.Name, err)
	}
	return nil
}
