package admin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// Move names on a PV, as it was observed, the config revision, "namespace/name", under which its
// volume is deleted and expanded from now on.
func Move(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, revision string) error {
	if _, err := patch.Merge(ctx, client.CoreV1().PersistentVolumes(), pv, patch.Annotate(map[string]string{contract.AnnRevision: revision})); err != nil {
		return fmt.Errorf("annotate the PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}
