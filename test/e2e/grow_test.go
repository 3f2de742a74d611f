//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// After a volume has grown, an initiator that logs in sees its new size, by either workflow of exporting it.
func TestInitiatorSeesTheGrownDisk(t *testing.T) {
	for _, api := range []string{"attachments", "reserve"} {
		t.Run(api, func(t *testing.T) {
			w := newWorld(t, "grow")
			w.class(w.ns, parameter("type", "lvm"), parameter("attach-api", api),
				func(class *storagev1.StorageClass) { class.AllowVolumeExpansion = new(true) })
			w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"verbs": "provision,delete,expand"}))
			claim := w.claim(w.ns, "data")
			pv := w.bound(claim)
			user, password := w.chap(pv)
			contains(t, "what the initiator sees", w.checkStorage(pv.Spec.ISCSI, user, password), "the disk has 1 GiB")

			w.grow(claim, "2Gi")
			equal(t, "the volume's size", w.onlyVolume(claim).Size, 2)
			contains(t, "what the initiator sees", w.checkStorage(pv.Spec.ISCSI, user, password), "the disk has 2 GiB")
		})
	}
}

// grow asks for more, and waits until the PV has it.
func (w *world) grow(claim *corev1.PersistentVolumeClaim, size string) {
	w.t.Helper()
	patch := []byte(`{"spec":{"resources":{"requests":{"storage":"` + size + `"}}}}`)
	_, err := kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(w.ctx(), claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	w.must(err, "ask for "+size)
	w.eventually(toBind, "the PV to have "+size, func(ctx context.Context) error {
		pv, err := kube.CoreV1().PersistentVolumes().Get(ctx, "pvc-"+string(claim.UID), metav1.GetOptions{})
		if has := pv.Spec.Capacity.Storage().String(); err == nil && has != size {
			return fmt.Errorf("it has %s", has)
		}
		return err
	})
}
