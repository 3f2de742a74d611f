//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Kubernetes binds a claim also to a PV that is being deleted, if each names the other. The PV of this
// claim does not fit. Its user names it while the volume is deleted, and is not bound to it.
func TestAClaimIsNotBoundToAPVThatIsDeletedSinceItDoesNotFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "taken")
	class, _ := w.service(scripted("[ $FLEX_VERB != delete ] || { sleep 20; exit 0; }\nexit 69\n", map[string]string{"max-attempts": "1"}))
	claim := w.claim(class, "data")
	w.failed(claim, 1, toBind)
	record := w.onlyJob(claim, "provision")
	name := contract.PVName(string(claim.UID))
	source := corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.250.0.9", Path: "/exports/" + name}} // of no other PV
	pv := attackPV(name, string(claim.UID), class, source, reclaimed(corev1.PersistentVolumeReclaimDelete), finalizedBy(contract.FinalizerStorage),
		annotatedPV(contract.AnnProvisionedBy, contract.ProvisionerName), annotatedPV(contract.AnnRevision, record.Annotations[contract.AnnRevision]))
	pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name = claim.Namespace, claim.Name
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	w.madePV(pv)
	w.eventually(toBind, "its volume to be deleted", func(ctx context.Context) error {
		now, err := kube.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
		if err == nil && now.DeletionTimestamp == nil {
			err = errors.New("its PV is not terminating")
		}
		return err
	})
	_, err := kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(w.ctx(), claim.Name, types.MergePatchType,
		[]byte(`{"spec":{"volumeName":"`+pv.Name+`"}}`), metav1.PatchOptions{})
	w.must(err, "name the PV in the claim")
	w.eventually(toBind, "the PV to go", func(ctx context.Context) error {
		if now, err := lookClaim(ctx, claim); err != nil || now.Status.Phase == corev1.ClaimBound {
			t.Fatalf("the claim is bound to %s, whose volume is deleted, or: %v", now.Spec.VolumeName, err)
		}
		now, err := kube.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is %s", now.Status.Phase)
		}
		return err
	})
	w.event(claim, "VolumeWithdrawn", "has the capacity 1Mi")
	w.deleteClaim(claim)
	w.vanished(claim)
}
